use super::*;

#[test]
fn the_built_in_plan_is_the_documented_grid() {
    let plan = Plan::push_left();
    assert_eq!(plan.task(), "push the object to the left");
    assert_eq!((plan.episodes(), plan.cells().count()), (24, 24));
    let o = plan.object();
    assert_eq!(
        (o.name.as_str(), o.size_m, o.mass_kg, o.rgb),
        ("yellow-large", [0.06, 0.03, 0.03], 0.06, [0.9, 0.8, 0.1])
    );
    let names: Vec<_> = plan.cameras().iter().map(|c| (c.spec.name.as_str(), c.spec.size.width)).collect();
    assert_eq!(names, [("main", 640), ("gripper", 320)]);
    assert!(plan.home().fingertip_m[2] >= 0.11, "the fingers reach about 6 mm below the fingertip frame");
}

const PICK_PLACE: &str = include_str!("../../../../tasks/pick_place.toml");
const STACK: &str = include_str!("../../../../tasks/stack.toml");

#[test]
fn the_plans_of_the_lab_are_its_grids_and_need_somebody_who_drives() {
    let plan = Plan::parse(PICK_PLACE, "pick_place").unwrap();
    assert_eq!((plan.kind(), plan.episodes()), (PlanKind::Teleoperated, 8 * 4 * 3));
    assert_eq!((plan.object().name.as_str(), plan.props()[0].name.as_str()), ("orange-cube", "box"));
    let plan = Plan::parse(STACK, "stack").unwrap();
    assert_eq!((plan.kind(), plan.episodes()), (PlanKind::Teleoperated, 4 * 2 * 3));
    let base = &plan.props()[0];
    assert_eq!((base.name.as_str(), base.size_m, base.pose.y_m), ("blue-cube", [0.03; 3], 0.07));
    // Nothing is put where a prop lies.
    for text in [PICK_PLACE, STACK] {
        let plan = Plan::parse(text, "plan").unwrap();
        let object = plan.object().clone();
        for cell in plan.cells() {
            for prop in plan.props() {
                let gap_m = [cell.mark_m[0] - prop.pose.x_m, cell.mark_m[1] - prop.pose.y_m];
                let apart_m = gap_m[0].hypot(gap_m[1]);
                assert!(
                    apart_m > (object.size_m[0] + prop.size_m[0]) / 2.0 * 1.42 * 0.9,
                    "{cell:?} {prop:?}"
                );
            }
        }
    }
}

#[test]
fn a_plan_that_says_nothing_is_push_left_and_keeps_the_fingerprint_of_sets_that_exist() {
    let plan = Plan::push_left();
    assert_eq!((plan.kind(), plan.props().len()), (PlanKind::PushLeft, 0));
    assert_eq!(plan.fingerprint(), "2b0025b8258a2338");
}

#[test]
fn the_command_line_may_change_words_time_and_cameras() {
    let plan = Plan::push_left().with_task("sweep").unwrap().with_cap_s(2.5).unwrap();
    assert_eq!((plan.task(), plan.cap()), ("sweep", Duration::from_millis(2500)));
    assert!(Plan::push_left().with_task("  ").is_err());
    assert!(Plan::push_left().with_cap_s(f64::NAN).is_err());
    let seen = [CameraSpec::new("gripper", 64, 48), CameraSpec::new("side", 64, 48)];
    let plan = plan.with_cameras(&seen);
    assert_eq!(Plan::free("wave").unwrap().kind(), PlanKind::Free);
    assert_eq!(plan.cameras().len(), 1);
    assert_eq!(plan.cameras()[0].spec, seen[0]);
}

#[test]
fn the_first_pass_covers_every_cell_before_any_comes_again() {
    let plan = Plan::push_left();
    let place = |c: &Cell| [c.mark_m[0], c.mark_m[1], c.yaw.0].map(|v| (v * 1e6).round() as i64);
    let cells: Vec<Cell> = plan.cells().collect();
    let first: std::collections::BTreeSet<_> = cells[..8].iter().map(place).collect();
    assert_eq!(first.len(), 8);
    for (i, c) in cells.iter().enumerate() {
        assert_eq!((c.repetition as usize, place(c)), (i / 8, place(&cells[i % 8])));
    }
}

#[test]
fn an_episode_depends_on_seed_and_index_alone_and_stays_within_the_jitter() {
    let plan = Plan::push_left();
    let mut poses = Vec::new();
    for seed in [0, 1, u64::MAX] {
        for index in (0..24).rev() {
            let e = plan.episode(seed, index, Jitter::On).unwrap();
            assert_eq!(e, plan.episode(seed, index, Jitter::On).unwrap());
            let d = [e.pose.x_m - e.cell.mark_m[0], e.pose.y_m - e.cell.mark_m[1]];
            assert!(d.iter().all(|v| v.abs() <= 0.015), "{d:?}");
            poses.push(d.map(f64::to_bits));
        }
    }
    let all = poses.len();
    poses.sort_unstable();
    poses.dedup();
    assert_eq!(poses.len(), all, "every draw is another one");
}

#[test]
fn without_jitter_the_object_lies_on_the_mark() {
    let plan = Plan::push_left();
    for (i, cell) in plan.cells().enumerate() {
        let e = plan.episode(5, i as u32, Jitter::Off).unwrap();
        assert_eq!([e.pose.x_m, e.pose.y_m], cell.mark_m);
        assert_eq!(e.pose.yaw, cell.yaw);
    }
}

#[test]
fn more_episodes_than_the_plan_has_are_refused_with_both_figures() {
    let plan = Plan::push_left();
    assert!(plan.check_count(24).is_ok());
    let e = plan.check_count(25).unwrap_err();
    assert_eq!(e.to_string(), "plan built-in: it has 24 episodes, 25 were asked for: ask for fewer");
    assert!(plan.episode(0, 24, Jitter::On).is_err());
}

#[test]
fn an_unknown_object_is_refused_with_the_known_ones() {
    let mut plan = Plan::push_left();
    plan.select_object("yellow-large").unwrap();
    let e = plan.select_object("mug").unwrap_err();
    assert_eq!(e.to_string(), "plan built-in: there is no object mug, choose one of: yellow-large");
}

#[test]
fn a_bad_plan_is_refused_with_place_and_reason() {
    let cases = [
        ("jitter_mm = 15.0", "jiter_mm = 15.0", "line 12: unknown field `jiter_mm`"),
        ("repetitions = 3", "repetitions = 0", "repetitions x positions x yaws is 0"),
        ("repetitions = 3", "repetitions = 4000000000", "repetitions x positions x yaws"),
        ("repetitions = 3", "repetitions = -3", "line 10: invalid value"),
        ("episode_cap_s = 8.0", "episode_cap_s = nan", "episode_cap_s is NaN, which has to be from 0.1"),
        ("mass_g = 60.0", "", "missing field `mass_g`"),
        ("size_mm = [60.0, 30.0, 30.0]", "size_mm = [60.0, 30.0]", "invalid length 2"),
        ("rgb = [0.9, 0.8, 0.1]", "rgb = [0.9, 0.8, 1.1]", "objects.rgb is 1.1"),
        ("name = \"gripper\"", "name = \"main\"", "cameras is main twice"),
        ("width = 320", "width = 321", "cameras.width and height is 321"),
        ("look_at_mm = [250.0, 0.0, 50.0]", "look_at_mm = [750.0, 0.0, 0.0]", "a point beside the camera"),
        ("task = ", "task == ", "line 4: "),
        ("episode_cap_s", "kind = \"throw\"\nepisode_cap_s", "line 5: unknown variant `throw`"),
    ];
    for (from, to, expected) in cases {
        assert!(PUSH_LEFT.contains(from), "{from}");
        let e = Plan::parse(&PUSH_LEFT.replacen(from, to, 1), "my.toml").unwrap_err().to_string();
        assert!(e.starts_with("plan my.toml: ") && e.contains(expected) && !e.contains('\n'), "{to}: {e}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(cut in 0..PUSH_LEFT.len(), byte in "[ -~\n]") {
        let mut text = PUSH_LEFT.to_owned();
        if text.is_char_boundary(cut) && text.is_char_boundary(cut + 1) {
            text.replace_range(cut..=cut, &byte);
        }
        let _ = Plan::parse(&text, "fuzzed");
    }
}
