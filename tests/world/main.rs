//! The real program against a faked world, real git and the real Docker engine.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    unreachable_pub,
    reason = "a test that cannot go on says so by panicking; it hands PATH and the engine's address on to the \
              program; a test binary exports nothing"
)]

mod approvals;
mod asking;
mod authority;
mod automatic_approval;
mod big;
mod certificates;
mod certificates_in_containers;
mod changes;
mod chat;
#[cfg(feature = "kubernetes")]
mod cluster;
mod code_index;
mod command_line;
mod commands;
mod compose;
mod confidential;
mod container;
mod credentials;
mod cut_streams;
mod doctor;
mod early_environment;
mod early_stops;
mod egress;
mod endings;
mod engine;
mod environment;
mod evidence;
mod executor;
mod fake;
mod following;
mod frugal;
mod gitlab_items;
mod guard;
mod guard_of_results;
mod health;
mod hoses;
mod hostile_forges;
mod in_step;
mod issues;
mod kept_plans;
mod kept_set_up;
mod killed;
mod large_files;
mod large_repositories;
mod least_rights;
mod local_only;
mod local_tasks;
mod logs;
mod long_conversations;
mod lost_container;
mod many_tools;
mod marks;
mod mcp_servers;
mod memory;
mod model_roles;
mod modes;
mod old_histories;
mod old_store;
mod open_questions;
mod opened_requests;
mod orphans;
mod parking;
mod pausing;
mod personal_data;
mod plan_approvals;
mod policy;
mod progress;
mod proxies;
mod real_forges;
mod remarks;
mod requests;
mod retention;
mod reviewer_programs;
mod reviews;
mod rules;
mod services;
mod several_hosts;
mod shared_store;
mod shipped_environments;
mod side_by_side;
mod signing;
mod sources;
mod statistics;
mod steering;
mod stopping;
mod store_trouble;
mod streaming;
mod submodules;
mod together;
mod traces;
mod two_installations;
mod unseen_pushes;
mod vouched;
mod warm;
mod ways_out;
mod weak_models;
mod web;
mod work_tree;
mod worker_in_a_container;
mod world;
