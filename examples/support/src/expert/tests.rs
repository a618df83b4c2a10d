use super::*;
use crate::plan::{Jitter, Plan};
use crate::scene::{Pad, jaw_pads};
use so101_hal::kinematics::{GripperMap, LIMITS, LinkPoses};

const HZ: u32 = 30;

/// Every cell of the plan on its mark, and with the jitter of some seeds.
fn setups() -> Vec<EpisodeSetup> {
    let plan = Plan::push_left();
    let marks = (0..8).map(|i| plan.episode(0, i, Jitter::Off).unwrap());
    let drawn = (1..=6).flat_map(|seed| (0..8).map(move |i| (seed, i)));
    marks.chain(drawn.map(|(seed, i)| plan.episode(seed, i, Jitter::On).unwrap())).collect()
}

fn radians(goal: &Goal) -> [Radians; 5] {
    goal.joints.body.map(Radians::from)
}

fn links(goal: &Goal) -> LinkPoses {
    Kinematics::links(&radians(goal), GripperMap::model().jaw(goal.joints.gripper).unwrap())
}

fn goals(expert: &mut PushLeft) -> Vec<Goal> {
    let n = (expert.duration().as_secs_f64() * f64::from(HZ)).ceil() as u32;
    (0..=n).map(|i| expert.goal(Duration::from_secs(i.into()) / HZ).unwrap()).collect()
}

fn expert(setup: &EpisodeSetup, left_of: LeftOf) -> PushLeft {
    PushLeft::new(&Plan::push_left().home(), setup, PushConfig { left_of, ..PushConfig::default() }).unwrap()
}

#[test]
fn every_episode_starts_and_ends_at_home_within_its_cap() {
    let home = PushLeft::home(&Plan::push_left().home(), LeftOf::Robot).unwrap();
    for setup in setups() {
        let mut expert = expert(&setup, LeftOf::Robot);
        assert!(expert.duration() + Duration::from_millis(500) <= setup.cap, "{:?}", expert.duration());
        let goals = goals(&mut expert);
        let (first, last) = (goals.first().unwrap(), goals.last().unwrap());
        assert_eq!((first.joints, last.joints, last.phase), (home, home, Phase::Done));
    }
}

#[test]
fn goals_stay_within_limits_speeds_and_above_the_table() {
    for left_of in [LeftOf::Robot, LeftOf::Camera] {
        for setup in setups() {
            let goals = goals(&mut expert(&setup, left_of));
            for goal in &goals {
                for (q, limits) in radians(goal).iter().zip(LIMITS) {
                    assert_eq!(limits.excess(*q).0, 0.0, "{goal:?}");
                }
                let lowest_m = jaw_pads(&links(goal)).iter().map(Pad::lowest_m).fold(1.0, f64::min);
                assert!(lowest_m >= 0.003, "{lowest_m} {goal:?}");
            }
            for pair in goals.windows(2) {
                for (a, b) in radians(&pair[0]).iter().zip(radians(&pair[1])) {
                    assert!((b.0 - a.0).abs() * f64::from(HZ) <= 3.0, "{pair:?}");
                }
            }
        }
    }
}

#[test]
fn only_the_push_touches_the_object() {
    for setup in setups() {
        let footprint = setup.object.footprint(&setup.pose);
        for goal in goals(&mut expert(&setup, LeftOf::Robot)) {
            let pads = jaw_pads(&links(&goal));
            let low = pads.iter().filter(|p| p.lowest_m() < setup.object.size_m[2] + 0.005);
            let gap_m = low
                .map(|p| footprint.distance_m([p.center_m[0], p.center_m[1]]) - p.radius_m)
                .fold(f64::INFINITY, f64::min);
            if matches!(goal.phase, Phase::Approach | Phase::Descend) {
                assert!(gap_m > 0.015, "{gap_m} {goal:?}");
            }
        }
    }
}

#[test]
fn the_back_of_the_fixed_jaw_faces_the_push() {
    for left_of in [LeftOf::Robot, LeftOf::Camera] {
        for setup in setups() {
            for goal in goals(&mut expert(&setup, left_of)).iter().filter(|g| g.phase == Phase::Push) {
                let against = links(goal).gripper.axis(0)[1] * left_of.sign();
                assert!(against < -0.95, "{against} {goal:?}");
            }
        }
    }
}

#[test]
fn left_of_a_camera_is_the_mirrored_way() {
    let setup = Plan::push_left().episode(0, 2, Jitter::Off).unwrap();
    for (left_of, sign) in [(LeftOf::Robot, 1.0), (LeftOf::Camera, -1.0)] {
        let y_m: Vec<f64> = goals(&mut expert(&setup, left_of))
            .iter()
            .filter(|g| g.phase == Phase::Push)
            .map(|g| Kinematics::new(Tcp::LEROBOT_FINGERTIP).fk(&radians(g)).position_m[1])
            .collect();
        let way_m = y_m.last().unwrap() - y_m.first().unwrap();
        assert!((way_m * sign - 0.125).abs() < 0.005, "{way_m}");
    }
}

#[test]
fn a_mark_out_of_reach_is_refused_before_anything_moves() {
    let mut setup = Plan::push_left().episode(0, 0, Jitter::Off).unwrap();
    setup.pose.x_m = 0.6;
    let e = PushLeft::new(&Plan::push_left().home(), &setup, PushConfig::default()).unwrap_err();
    assert!(matches!(e, Error::Unreachable { .. }), "{e}");
    assert!(e.to_string().starts_with("the arm cannot go to x "), "{e}");
}
