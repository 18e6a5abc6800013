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
mod store_trouble;
mod certificates;
mod certificates_in_containers;
mod changes;
mod chat;
mod command_line;
mod code_index;
#[cfg(feature = "kubernetes")]
mod cluster;
mod commands;
mod compose;
mod confidential;
mod container;
mod credentials;
mod cut_streams;
mod doctor;
mod door;
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
mod in_step;
mod hostile_forges;
mod issues;
mod journal_files;
mod kept_set_up;
mod kept_plans;
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
mod mcp_servers;
mod marks;
mod memory;
mod model_roles;
mod modes;
mod old_histories;
mod old_store;
mod open_questions;
mod opened_requests;
mod orphans;
mod parking;
mod passing;
mod pausing;
mod personal_data;
mod plan_approvals;
mod policy;
mod ports;
mod processes;
mod progress;
mod proxies;
mod real_forges;
mod reading;
mod remarks;
mod requests;
mod retention;
mod reviewer_programs;
mod reviews;
mod rules;
mod shared_store;
mod shipped_environments;
mod side_by_side;
mod services;
mod several_hosts;
mod signing;
mod sources;
mod statistics;
mod steering;
mod stopping;
mod streaming;
mod submodules;
mod together;
mod traces;
mod two_installations;
mod unseen_pushes;
mod vouched;
mod warm;
mod ways_out;
mod web;
mod weak_models;
mod work_tree;
mod worker_in_a_container;
mod world;
