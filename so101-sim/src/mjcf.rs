//! The MJCF text of a scene.

use std::fmt::Write as _;

use so101_hal::JOINTS;
use so101_hal::kinematics::{JAW_CONTACT, Tcp};

use crate::arm::{
    JOINT_ARMATURE, JOINT_DAMPING, JOINT_FRICTION_NM, Link, SERVO_KP, SERVO_KV, SERVO_TORQUE_NM, links,
};
use crate::error::Result;
use crate::scene::{Mount, ObjectSpec, Scene, SceneCamera};
use crate::shapes::{Form, Shape, Touch, shapes};
use crate::step::StepPlan;
use crate::units::joint_limits;

/// Name of the object's body, joint and geom.
pub(crate) const OBJECT: &str = "object";
/// Name of the site at LeRobot's tool centre point.
pub(crate) const FINGERTIP_SITE: &str = "fingertip";
/// Name of the site between the jaws.
pub(crate) const PINCH_SITE: &str = "pinch";

impl Scene {
    /// The model as MJCF, complete in itself: no file, mesh or texture beside it.
    ///
    /// # Errors
    /// The first number or name of the scene that is not usable.
    pub fn mjcf(&self, step: StepPlan) -> Result<String> {
        self.check()?;
        let mut x = Xml::default();
        x.line("<mujoco model=\"so101\">");
        self.settings(&mut x, step);
        x.line("<worldbody>");
        self.surroundings(&mut x);
        let links = links();
        let shapes = shapes(JAW_CONTACT.0);
        for link in &links {
            self.open_link(&mut x, link, &shapes);
        }
        for link in links.iter().rev() {
            // The jaw is the innermost body: closing in reverse ends them all.
            let _ = link;
            x.line("</body>");
        }
        if let Some(object) = &self.object {
            free_box(&mut x, object);
        }
        x.line("</worldbody>");
        actuators(&mut x);
        x.line("</mujoco>");
        Ok(x.text)
    }

    fn settings(&self, x: &mut Xml, step: StepPlan) {
        let size = self.offscreen();
        x.line("<compiler angle=\"radian\" autolimits=\"true\"/>");
        // Contacts as Menagerie's robotstudio_so101: elliptic friction cones, impratio 10; noslip keeps grasps.
        x.line(&format!(
            "<option timestep=\"{:.12}\" integrator=\"implicitfast\" cone=\"elliptic\" impratio=\"10\" \
             iterations=\"10\" ls_iterations=\"20\" noslip_iterations=\"4\"/>",
            step.step_s()
        ));
        x.line("<visual>");
        x.line(&format!("<global offwidth=\"{}\" offheight=\"{}\"/>", size.width, size.height));
        // No shadow map and no multisampling: what makes a software renderer slow.
        x.line(
            "<quality shadowsize=\"0\" offsamples=\"0\" numslices=\"20\" numstacks=\"10\" numquads=\"4\"/>",
        );
        x.line("<headlight ambient=\"0.38 0.38 0.38\" diffuse=\"0 0 0\" specular=\"0 0 0\"/>");
        x.line("<map znear=\"0.005\" zfar=\"6\"/>");
        x.line("</visual>");
        x.line("<statistic center=\"0.2 0 0.1\" extent=\"1\"/>");
        x.line("<asset>");
        for (name, rgba, specular) in [
            ("printed", "0.80 0.81 0.84 1", 0.2),
            ("servo", "0.10 0.10 0.11 1", 0.4),
            ("board", "0.05 0.30 0.15 1", 0.2),
            ("pad", "0.25 0.25 0.27 1", 0.05),
            ("floor", "0.34 0.36 0.40 1", 0.0),
            ("wall", "0.62 0.65 0.70 1", 0.0),
        ] {
            let specular = num(specular);
            x.line(&format!(
                "<material name=\"{name}\" rgba=\"{rgba}\" specular=\"{specular}\" shininess=\"0.3\"/>"
            ));
        }
        // 50 mm tiles: on a plain table nobody sees how far a thing has moved, neither people nor policies.
        x.line(
            "<texture name=\"tiles\" type=\"2d\" builtin=\"checker\" mark=\"edge\" width=\"128\" height=\"128\" \
             rgb1=\"0.60 0.53 0.46\" rgb2=\"0.54 0.47 0.40\" markrgb=\"0.48 0.42 0.36\"/>",
        );
        x.line("<material name=\"table\" texture=\"tiles\" texrepeat=\"10 10\" texuniform=\"true\" specular=\"0\"/>");
        x.line("</asset>");
        x.line("<default>");
        x.line(&format!(
            "<joint damping=\"{}\" armature=\"{}\" frictionloss=\"{}\"/>",
            num(JOINT_DAMPING),
            num(JOINT_ARMATURE),
            num(JOINT_FRICTION_NM)
        ));
        x.line("<default class=\"ghost\"><geom contype=\"0\" conaffinity=\"0\" group=\"2\"/></default>");
        // Arm parts meet table and objects, never each other.
        x.line("<default class=\"solid\"><geom contype=\"1\" conaffinity=\"2\" condim=\"4\" group=\"2\"/></default>");
        x.line(
            "<default class=\"grip\"><geom contype=\"1\" conaffinity=\"2\" condim=\"6\" friction=\"1 0.005 0.0005\" \
             solref=\"0.01 1\" priority=\"1\" group=\"2\"/></default>",
        );
        x.line("</default>");
    }

    fn surroundings(&self, x: &mut Xml) {
        // Directional lights only: one near the camera shades large faces unevenly.
        for (direction, diffuse, specular) in [
            ("0.25 -0.35 -0.9", "0.42 0.42 0.40", "0.15 0.15 0.15"),
            ("-0.6 0.4 -0.7", "0.18 0.18 0.20", "0 0 0"),
            ("-0.85 -0.1 -0.5", "0.14 0.14 0.14", "0 0 0"),
        ] {
            x.line(&format!(
                "<light directional=\"true\" castshadow=\"false\" pos=\"0.2 0 1.5\" dir=\"{direction}\" \
                 diffuse=\"{diffuse}\" specular=\"{specular}\"/>"
            ));
        }
        if let Some(table_m) = self.table_m {
            table(x, table_m);
        }
        x.line(
            "<geom class=\"ghost\" type=\"plane\" pos=\"0.3 0 -0.75\" size=\"4 4 0.1\" material=\"floor\"/>",
        );
        x.line(
            "<geom class=\"ghost\" type=\"plane\" pos=\"-1.2 0 0.6\" size=\"4 4 0.1\" zaxis=\"1 0 0\" material=\"wall\"/>",
        );
        for camera in &self.cameras {
            if let Mount::Room { from_m, look_at_m } = camera.mount {
                let axes = upright_axes(from_m, look_at_m);
                x.line(&camera_tag(camera, from_m, &format!("xyaxes=\"{}\"", nums(&axes))));
            }
        }
    }

    fn open_link(&self, x: &mut Xml, link: &Link, shapes: &[Shape]) {
        x.line(&format!(
            "<body name=\"{}\" pos=\"{}\" quat=\"{}\">",
            link.name,
            nums(&link.pos_m),
            nums(&link.quat)
        ));
        x.line(&format!(
            "<inertial pos=\"{}\" quat=\"{}\" mass=\"{}\" diaginertia=\"{}\"/>",
            nums(&link.com_m),
            nums(&link.inertia_quat),
            num(link.mass_kg),
            nums(&link.inertia)
        ));
        if let Some(joint) = link.joint {
            let limits = joint_limits(joint);
            let (lower, upper) = (limits.lower.0, limits.upper.0);
            x.line(&format!(
                "<joint name=\"{joint}\" axis=\"0 0 1\" range=\"{} {}\"/>",
                num(lower),
                num(upper)
            ));
        }
        for shape in shapes.iter().filter(|s| s.link == link.name) {
            x.line(&geom_tag(shape));
        }
        if link.name == "gripper" {
            for (name, tcp) in [(FINGERTIP_SITE, Tcp::LEROBOT_FINGERTIP), (PINCH_SITE, Tcp::PINCH)] {
                let at = nums(&tcp.offset_m());
                x.line(&format!("<site name=\"{name}\" pos=\"{at}\" size=\"0.001\" group=\"4\"/>"));
            }
            for camera in &self.cameras {
                if let Mount::Hand { from_m, tilt_rad } = camera.mount {
                    x.line(&camera_tag(camera, from_m, &format!("euler=\"{} 0 0\"", num(tilt_rad))));
                }
            }
        }
    }
}

fn actuators(x: &mut Xml) {
    x.line("<actuator>");
    for joint in JOINTS {
        let limits = joint_limits(joint);
        let (lower, upper) = (limits.lower.0, limits.upper.0);
        x.line(&format!(
            "<position name=\"{joint}\" joint=\"{joint}\" kp=\"{}\" kv=\"{}\" ctrlrange=\"{} {}\" \
             forcerange=\"{} {}\"/>",
            num(SERVO_KP),
            num(SERVO_KV),
            num(lower),
            num(upper),
            num(-SERVO_TORQUE_NM),
            num(SERVO_TORQUE_NM)
        ));
    }
    x.line("</actuator>");
}

/// The table: what is touched is a plane, so that a box rests on four clean contacts, with a board below for the eye.
fn table(x: &mut Xml, [length_m, width_m]: [f64; 2]) {
    // The base's feet are 50 mm from the rear edge.
    let (half_l, half_w) = (length_m / 2.0, width_m / 2.0);
    let middle = half_l - 0.12;
    x.line(&format!(
        "<geom name=\"table\" type=\"plane\" pos=\"{} 0 0\" size=\"{} {} 0.1\" material=\"table\" contype=\"2\" \
         conaffinity=\"3\" condim=\"4\" friction=\"0.6 0.005 0.0001\"/>",
        num(middle),
        num(half_l),
        num(half_w)
    ));
    x.line(&format!(
        "<geom class=\"ghost\" type=\"box\" pos=\"{} 0 -0.0155\" size=\"{} {} 0.015\" material=\"table\"/>",
        num(middle),
        num(half_l),
        num(half_w)
    ));
}

fn free_box(x: &mut Xml, object: &ObjectSpec) {
    let half = object.size_m.map(|v| v / 2.0);
    x.line(&format!("<body name=\"{OBJECT}\" pos=\"0.25 0 {}\">", num(half[2])));
    x.line(&format!("<freejoint name=\"{OBJECT}\"/>"));
    x.line(&format!(
        "<geom name=\"{OBJECT}\" type=\"box\" size=\"{}\" mass=\"{}\" rgba=\"{} 1\" contype=\"3\" conaffinity=\"3\" \
         condim=\"4\" friction=\"{} 0.005 0.0001\"/>",
        nums(&half),
        num(object.mass_kg),
        nums(&object.rgb),
        num(object.friction)
    ));
    x.line("</body>");
}

fn camera_tag(camera: &SceneCamera, from_m: [f64; 3], orientation: &str) -> String {
    let fovy = num(camera.fovy_deg);
    format!("<camera name=\"{}\" pos=\"{}\" {orientation} fovy=\"{fovy}\"/>", camera.spec.name, nums(&from_m))
}

fn geom_tag(shape: &Shape) -> String {
    let mm = |v: f64| num(v / 1e3);
    let class = match shape.touch {
        Touch::Ghost => "ghost",
        Touch::Solid => "solid",
        Touch::Grip => "grip",
    };
    let mut tag = format!("<geom class=\"{class}\" ");
    if let Some(name) = shape.name {
        let _ = write!(tag, "name=\"{name}\" ");
    }
    let _ = match shape.form {
        Form::Box(half) => write!(tag, "type=\"box\" size=\"{}\"", half.map(mm).join(" ")),
        Form::Cylinder(r, half) => write!(tag, "type=\"cylinder\" size=\"{} {}\"", mm(r), mm(half)),
        Form::Capsule(r, half) => write!(tag, "type=\"capsule\" size=\"{} {}\"", mm(r), mm(half)),
    };
    let _ = write!(tag, " pos=\"{}\"", shape.center_mm.map(mm).join(" "));
    if shape.turn_deg != [0.0; 3] {
        let _ = write!(tag, " euler=\"{}\"", nums(&shape.turn_deg.map(f64::to_radians)));
    }
    let _ = write!(tag, " material=\"{}\"/>", shape.paint.material());
    tag
}

/// Right and up axes of a camera that looks from one point at another with a level horizon.
fn upright_axes(from: [f64; 3], at: [f64; 3]) -> [f64; 6] {
    let [fx, fy, fz] = unit([at[0] - from[0], at[1] - from[1], at[2] - from[2]]);
    let [rx, ry, _] = unit([fy, -fx, 0.0]);
    // up = right x forward
    let up = [ry * fz, -rx * fz, rx * fy - ry * fx];
    [rx, ry, 0.0, up[0], up[1], up[2]]
}

fn unit(v: [f64; 3]) -> [f64; 3] {
    let n = v.iter().map(|c| c * c).sum::<f64>().sqrt();
    v.map(|c| c / n)
}

/// A number with at most ten decimals and no trailing zeros: enough for a tenth of a nanometre, and stable text.
fn num(v: f64) -> String {
    if v != 0.0 && v.abs() < 1e-3 {
        return format!("{v:e}");
    }
    let text = format!("{v:.10}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

fn nums(values: &[f64]) -> String {
    values.iter().map(|v| num(*v)).collect::<Vec<_>>().join(" ")
}

/// Text that indents itself by the tags that are open.
#[derive(Default)]
struct Xml {
    text: String,
    depth: usize,
}

impl Xml {
    fn line(&mut self, tag: &str) {
        if tag.starts_with("</") {
            self.depth = self.depth.saturating_sub(1);
        }
        for _ in 0..self.depth {
            self.text.push_str("  ");
        }
        self.text.push_str(tag);
        self.text.push('\n');
        let opens = !tag.starts_with("</") && !tag.ends_with("/>") && !tag.contains("</");
        if opens {
            self.depth += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_exact_to_a_tenth_of_a_nanometre() {
        for (v, text) in
            [(0.0, "0"), (-0.0, "0"), (0.05, "0.05"), (-0.0611, "-0.0611"), (1.0, "1"), (998.22, "998.22")]
        {
            assert_eq!(num(v), text);
        }
        for v in [0.038_835_3, -8.98e-9, 1.361_268_777_6e-4, 1.0 / 3.0, -2.743_847_3] {
            assert!((num(v).parse::<f64>().unwrap() - v).abs() < 1e-10);
        }
    }

    #[test]
    fn a_camera_that_faces_the_robot_has_the_robots_left_on_its_right() {
        let [rx, ry, rz, .., uz] = upright_axes([0.75, 0.0, 0.45], [0.25, 0.0, 0.05]);
        assert!((rx.abs() < 1e-12) && (ry - 1.0).abs() < 1e-12 && rz == 0.0 && uz > 0.7);
    }

    #[test]
    fn no_constraint_or_outside_force_exists_in_the_model() {
        let text = Scene::push_table().mjcf(StepPlan::for_rate(30).unwrap()).unwrap();
        for forbidden in ["equality", "<weld", "<motor", "mocap", "gravcomp", "adhesion"] {
            assert!(!text.contains(forbidden), "{forbidden}");
        }
        assert_eq!(text.matches("<freejoint").count(), 1);
        assert_eq!(text.matches("<position ").count(), 6);
    }
}
