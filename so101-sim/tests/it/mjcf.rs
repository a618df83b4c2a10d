//! The text of the model.

use so101_sim::{Scene, StepPlan};

#[test]
fn the_push_scene_is_this_text() {
    let text = Scene::push_table().mjcf(StepPlan::for_rate(30).unwrap()).unwrap();
    insta::assert_snapshot!(text);
}
