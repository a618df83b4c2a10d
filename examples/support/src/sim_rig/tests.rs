use super::*;
use crate::expert::PushConfig;
use crate::plan::Jitter;

#[test]
fn the_demonstrator_pushes_from_every_cell_of_the_plan() {
    let plan = Plan::push_left();
    for left_of in [LeftOf::Robot, LeftOf::Camera] {
        let mut rig = SimRig::new(&plan, 30, left_of, Pictures::Off).unwrap();
        let config = PushConfig { left_of, ..PushConfig::default() };
        let mut failed = Vec::new();
        for index in 0..plan.episodes() {
            let setup = plan.episode(0, index, Jitter::On).unwrap();
            let trial = rig.trial(&plan, &setup, config).unwrap();
            let way_m = trial.verdict.moved_m;
            assert!(left_of.sign() * (trial.poses.last().unwrap()[2] - setup.pose.y_m) - way_m < 1e-3);
            if !trial.verdict.success() {
                failed.push((setup, trial.verdict));
            }
        }
        assert!(failed.len() <= 1, "{left_of:?}: {failed:#?}");
    }
}

#[test]
fn a_trial_ends_when_the_recorder_would() {
    let plan = Plan::push_left();
    let mut rig = SimRig::new(&plan, 30, LeftOf::Robot, Pictures::Off).unwrap();
    let mut setup = plan.episode(0, 0, Jitter::Off).unwrap();
    let config = PushConfig::default();
    let expert = PushLeft::new(&plan.home(), &setup, config).unwrap();
    let rest_s = expert.duration().as_secs_f64() + 0.3;
    let end_s =
        |rig: &mut SimRig, setup: &_| rig.trial(&plan, setup, config).unwrap().poses.last().unwrap()[0];
    assert!((end_s(&mut rig, &setup) - rest_s).abs() < 1.0 / 30.0);
    setup.cap = std::time::Duration::from_secs(2);
    assert!((end_s(&mut rig, &setup) - 2.0).abs() < 1e-9);
}

#[test]
fn the_plans_scene_is_the_main_jobs_scene() {
    assert_eq!(scene(&Plan::push_left()), Scene::push_table());
}

#[test]
fn episodes_begin_at_home_with_the_object_where_the_plan_says() {
    let plan = Plan::push_left();
    let mut rig = SimRig::new(&plan, 30, LeftOf::Robot, Pictures::Off).unwrap();
    let setup = plan.episode(3, 5, Jitter::On).unwrap();
    rig.begin(&setup).unwrap();
    let seen = rig.observe().unwrap();
    let home = PushLeft::home(&plan.home(), LeftOf::Robot).unwrap();
    for (a, b) in seen.joints.to_row().into_iter().zip(home.to_row()) {
        assert!((a - b).abs() < 1e-9);
    }
    let object = rig.object().unwrap();
    assert!((object.x_m - setup.pose.x_m).abs() < 1e-12 && (object.y_m - setup.pose.y_m).abs() < 1e-12);
    assert!((object.yaw.0 - setup.pose.yaw.0).abs() < 1e-9);
}
