//! `meta/so101/task.json`: what the task is and in which frame its words are meant.

use serde_json::{Value, json};

use crate::expert::LeftOf;
use crate::plan::{CameraMount, Plan, PlanKind, PlannedCamera, Prop};

use super::rigs::Rig;

/// The task's description.
///
/// `left` in an instruction is +y of the arm's base unless another was asked for; a camera that faces the robot shows it mirrored, so the direction
/// on each fixed camera's picture is spelled out.
#[must_use]
pub fn describe(plan: &Plan, left_of: LeftOf, rig: &dyn Rig) -> Value {
    let object = plan.object();
    let fixed =
        plan.cameras().iter().filter_map(|c| Some((c.spec.name.clone(), left_in_image(c, left_of)?.into())));
    json!({
        "task": plan.task(),
        "rig": rig.description().rig,
        // Without a plan nobody knows what lies there.
        "object": (plan.kind() != PlanKind::Free).then(|| json!({
            "name": object.name,
            "size_m": object.size_m,
            "mass_kg": object.mass_kg,
            "rgb": object.rgb,
        })),
        "props": plan.props().iter().map(prop).collect::<Vec<_>>(),
        "frame": {
            "base": "x forward, y left, z up; metres",
            "left": left_axis(left_of),
            "left_in_image": fixed.collect::<serde_json::Map<_, _>>(),
        },
        "cameras": plan.cameras().iter().map(camera).collect::<Vec<_>>(),
    })
}

fn prop(p: &Prop) -> Value {
    json!({
        "name": p.name,
        "size_m": p.size_m,
        "rgb": p.rgb,
        "position_m": [p.pose.x_m, p.pose.y_m],
        "yaw_rad": p.pose.yaw.0,
    })
}

/// The axis of the base that the task calls left.
#[must_use]
pub fn left_axis(left_of: LeftOf) -> &'static str {
    match left_of {
        LeftOf::Robot => "+y",
        LeftOf::Camera => "-y",
    }
}

/// Where the task's left points on the picture of a fixed camera: `None` for one that the hand carries, or one that
/// looks along y.
fn left_in_image(camera: &PlannedCamera, left_of: LeftOf) -> Option<&'static str> {
    let CameraMount::Base { position_m, look_at_m } = camera.mount else { return None };
    // The picture's right is the optical axis cross the base's z; its y component is minus the axis' x.
    let right_y = -(look_at_m[0] - position_m[0]);
    match right_y * left_of.sign() {
        y if y > 0.0 => Some("right"),
        y if y < 0.0 => Some("left"),
        _ => None,
    }
}

fn camera(c: &PlannedCamera) -> Value {
    let mount = match c.mount {
        CameraMount::Base { position_m, look_at_m } => {
            json!({ "frame": "base", "position_m": position_m, "look_at_m": look_at_m })
        }
        CameraMount::Gripper { position_m, turn_x } => {
            json!({ "frame": "gripper_link", "position_m": position_m, "turn_x_rad": turn_x.0 })
        }
    };
    let size = c.spec.size;
    json!({
        "name": c.spec.name,
        "width": size.width,
        "height": size.height,
        // A plan says degrees: what comes back from radians is shown without the last digits' noise.
        "fovy_deg": (c.fovy.0.to_degrees() * 1e9).round() / 1e9,
        "mount": mount,
    })
}
