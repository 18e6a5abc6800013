//! A plan: what is read is valid or is refused in words, and its order holds each subtask once.
#![no_main]

use coding_agent::conversation::Reply;
use coding_agent::plan;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let reply = Reply {
        text: text.to_owned(),
        ..Reply::default()
    };
    if let Ok(plan) = plan::read(&reply)
        && plan.validate(20).is_ok()
    {
        assert_eq!(plan.ordered().len(), plan.task_decomposition.subtasks.len());
        let _ = plan::choose_environment(&plan, &["python", "node"], "python");
    }
});
