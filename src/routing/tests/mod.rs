//! The corpus: real-looking messages of both languages with the route that they ought to get; and
//! what holds for any message.

use proptest::prelude::*;

use super::Route;
use super::classifier::{Classified, Fault, Thresholds};
use super::decision::{Decision, Doubt, Incoming, Source, Step, decide, is_announced};
use super::rules::Rules;
use super::text::is_japanese;

const CORPUS: &str = include_str!("corpus.txt");
const USUAL: Thresholds = Thresholds {
    least: 60,
    least_for_code: 80,
};

fn incoming(text: &str) -> Incoming<'_> {
    Incoming {
        text,
        local_only: false,
        far: &[],
        models: &[],
        enters_as_chat: false,
    }
}

/// A message of the corpus.
struct Example {
    route: Route,
    /// `None` where the classifier is asked.
    source: Option<Source>,
    text: String,
}

fn corpus() -> Vec<Example> {
    let lines = CORPUS.lines().filter(|line| !line.starts_with('#'));
    let examples = lines.map(|line| {
        let mut parts = line.splitn(3, " | ");
        let route = parts.next().unwrap().parse().unwrap();
        let source = match parts.next().unwrap() {
            "command" => Some(Source::Command),
            "rule" => Some(Source::Rule),
            "ask" => None,
            other => panic!("{other}"),
        };
        Example {
            route,
            source,
            text: parts.next().unwrap().replace("\\n", "\n"),
        }
    });
    examples.collect()
}

#[test]
fn every_message_of_the_corpus_gets_its_route() {
    let corpus = corpus();
    let japanese = corpus.iter().filter(|example| is_japanese(&example.text)).count();
    assert!(
        corpus.len() >= 200 && japanese >= corpus.len() * 9 / 20,
        "{japanese} of {}",
        corpus.len()
    );
    let wrong: Vec<String> = corpus
        .iter()
        .filter_map(|example| {
            let got = match decide(&incoming(&example.text), Rules::shipped()) {
                Step::Decided(decision) => Some((decision.route, decision.source, decision.evidence)),
                Step::Unsure(_) => None,
            };
            let is_right = match (&got, example.source) {
                (Some((route, source, _)), Some(expected)) => *route == example.route && *source == expected,
                (None, None) => true,
                _ => false,
            };
            (!is_right).then(|| format!("{} {:?} {:?}: {got:?}", example.route, example.source, example.text))
        })
        .collect();
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_the_classifier_is_asked_about_ends_where_it_says_or_in_the_chat() {
    for example in corpus().iter().filter(|example| example.source.is_none()) {
        let unsure = || match decide(&incoming(&example.text), Rules::shipped()) {
            Step::Unsure(unsure) => unsure,
            Step::Decided(decision) => panic!("{decision:?}"),
        };
        let said = Classified {
            route: example.route,
            confidence: 90,
            reason: "so".to_owned(),
            evidence: vec![example.text.clone()],
        };
        let (decision, doubt) = unsure().with(Ok(said.clone()), Rules::shipped(), USUAL);
        match example.route {
            // These messages hold no word that is strong evidence by itself, or do.
            Route::Code => assert!(decision.route == Route::Code || doubt.is_some(), "{}", example.text),
            route => assert_eq!((decision.route, doubt), (route, None), "{}", example.text),
        }
        let unlikely = Classified { confidence: 59, ..said };
        for answer in [
            Ok(unlikely),
            Err(Fault::NotJson),
            Err(Fault::NoAnswer("late".to_owned())),
        ] {
            let (decision, doubt) = unsure().with(answer, Rules::shipped(), USUAL);
            assert_eq!((decision.route, decision.source), (Route::Chat, Source::Fallback));
            assert!(matches!(doubt, Some(Doubt::Faulty(_) | Doubt::Weak(..))));
        }
    }
}

fn decided(incoming: &Incoming<'_>) -> Decision {
    match decide(incoming, Rules::shipped()) {
        Step::Decided(decision) => decision,
        Step::Unsure(unsure) => unsure.fallback(),
    }
}

#[test]
fn a_session_that_asks_near_models_alone_refuses_what_is_elsewhere() {
    let far = [Route::Code];
    let near = |text| Incoming {
        local_only: true,
        far: &far,
        ..incoming(text)
    };
    for text in ["/code fix it", "バグを修正して", "fix the bug in the parser"] {
        let decision = decided(&near(text));
        assert!(decision.is_refused && decision.local_only, "{text}: {decision:?}");
    }
    let decision = decided(&near("/plan fix it"));
    assert!(!decision.is_refused && decision.route == Route::Plan);
    let decision = decided(&near("/cloud fix the bug in the parser"));
    assert!(!decision.is_refused && !decision.local_only && decision.route == Route::Code);
    let decision = decided(&Incoming {
        local_only: false,
        ..near("/local fix the bug in the parser")
    });
    assert!(decision.is_refused && decision.local_only);
    let decision = decided(&Incoming {
        local_only: false,
        ..near("/code fix it\n/local")
    });
    assert!(decision.is_refused && decision.local_only);
}

#[test]
fn a_channel_whose_messages_enter_as_chat_routes_nothing_by_itself() {
    for text in ["/code fix it", "バグを修正して", "deploy to production please"] {
        let line = Incoming {
            enters_as_chat: true,
            ..incoming(text)
        };
        let decision = decided(&line);
        assert_eq!((decision.route, decision.source), (Route::Chat, Source::Entry));
        assert_eq!(decision.request, text, "the chat model sees the command");
    }
}

#[test]
fn only_a_persons_own_words_ask_for_effects() {
    let classified = |text: &str, route: Route| match decide(&incoming(text), Rules::shipped()) {
        Step::Decided(decision) => decision,
        Step::Unsure(unsure) => {
            let said = Classified {
                route,
                confidence: 90,
                reason: String::new(),
                evidence: vec![text.to_owned()],
            };
            unsure.with(Ok(said), Rules::shipped(), USUAL).0
        }
    };
    for (text, route, code, ops) in [
        // Talk, in which the words of the message decide.
        ("hm, please fix that", Route::Chat, true, false),
        ("hm, what about parse.py", Route::Chat, false, false),
        ("hm, he wrote:\n> please fix that", Route::Chat, false, false),
        ("hm:\n```\nplease fix that\n```", Route::Chat, false, false),
        ("hm, see `fix that`", Route::Chat, false, false),
        // A worker reads what strangers wrote.
        ("hm, please fix that", Route::Analyze, false, false),
        ("バグの原因を調べて", Route::Chat, false, false),
        (
            "why does the parser crash, find the root cause",
            Route::Chat,
            false,
            false,
        ),
        // A command means itself.
        ("/plan fix the bug", Route::Chat, false, false),
        ("/chat fix the bug", Route::Chat, false, false),
        ("/ops status", Route::Chat, false, true),
    ] {
        let decision = classified(text, route);
        let asked = decision.asked_effects(Rules::shipped());
        let got = (asked.allow(Route::Code), asked.allow(Route::Ops));
        assert_eq!(got, (code, ops), "{text}: {decision:?}");
        assert!(
            Route::ALL
                .into_iter()
                .all(|route| route.has_effects() || asked.allow(route))
        );
    }
    let line = |text| {
        decided(&Incoming {
            enters_as_chat: true,
            ..incoming(text)
        })
    };
    for (text, code, request) in [
        ("バグを修正して", true, "バグを修正して"),
        ("/code 直す", true, "直す"),
        ("please\n/code it", true, "please\nit"),
        ("/local\n/code it", true, "it"),
        ("バグの原因を調べて", false, "バグの原因を調べて"),
    ] {
        let decision = line(text);
        let asked = decision.asked_effects(Rules::shipped());
        assert_eq!(
            (asked.allow(Route::Code), decision.own_request().as_str()),
            (code, request)
        );
    }
}

#[test]
fn a_model_is_named_in_a_channel_whose_messages_enter_as_chat_as_well() {
    let models = ["large".to_owned()];
    for (text, model, request) in [
        ("/code large github:a/b fix it", Some("large"), "github:a/b fix it"),
        ("/local\n/code large fix it", Some("large"), "fix it"),
        ("/code larger fix it", None, "larger fix it"),
        ("/plan large fixes", None, "large fixes"),
        ("large fixes", None, "large fixes"),
    ] {
        let decision = decided(&Incoming {
            models: &models,
            enters_as_chat: true,
            ..incoming(text)
        });
        assert_eq!(decision.source, Source::Entry);
        assert_eq!(
            (decision.model.as_deref(), decision.own_request().as_str()),
            (model, request),
            "{text}"
        );
    }
}

#[test]
fn a_route_is_announced_when_it_changes() {
    for (before, now, expected) in [
        (None, Route::Chat, false),
        (None, Route::Code, true),
        (Some(Route::Code), Route::Code, false),
        (Some(Route::Code), Route::Chat, false),
        (Some(Route::Chat), Route::Plan, true),
        (Some(Route::Plan), Route::Analyze, true),
    ] {
        assert_eq!(is_announced(before, now), expected, "{before:?} {now:?}");
    }
}

proptest! {
    /// Whatever the message says otherwise, a command at the beginning of its first line decides.
    #[test]
    fn a_command_comes_before_everything(name in "code|analyze|plan|ops|research|chat", rest in "[^\u{0}]{0,200}") {
        let text = format!("/{name} {rest}");
        let decision = decided(&incoming(&text));
        prop_assert_eq!(decision.source, Source::Command);
        prop_assert_eq!(decision.route.as_str().to_lowercase(), name);
        prop_assert_eq!(decision.confidence, 100);
    }

    /// Of the rules that apply the greatest priority counts, and among equals the first.
    #[test]
    fn rules_apply_by_priority_and_then_by_order(rules in prop::collection::vec((-3i32..3, 0usize..6, any::<bool>()), 1..12)) {
        let lines = rules.iter().map(|(priority, route, applies)| {
            let (route, word) = (Route::ALL[*route], if *applies { "here" } else { "elsewhere" });
            format!("- {{route: {route}, priority: {priority}, all: [[{word}]]}}")
        });
        let text = format!("rules:\n{}", lines.collect::<Vec<_>>().join("\n"));
        let applying = rules.iter().filter(|(_, _, applies)| *applies);
        let greatest = applying.clone().map(|(priority, ..)| *priority).max();
        let first = rules.iter().find(|(priority, _, applies)| *applies && Some(*priority) == greatest);
        let found = Rules::read(&text).unwrap().find("it is here");
        prop_assert_eq!(found.map(|hit| hit.route), first.map(|(_, route, _)| Route::ALL[*route]));
    }

    /// Commands in quotations or code change nothing.
    #[test]
    fn what_is_quoted_decides_nothing(quoted in "[^\n\r`~\u{0}]{0,80}", fence in prop::bool::ANY) {
        let text = if fence { format!("```\n/code {quoted}\n```\nhm") } else { format!("> /code fix the bug {quoted}\nhm") };
        prop_assert!(matches!(decide(&incoming(&text), Rules::shipped()), Step::Unsure(_)));
    }

    /// No message panics, loses its words or leaves a session that was told to stay near.
    #[test]
    fn any_message_is_decided(text in any::<String>()) {
        let far = [Route::Code, Route::Plan, Route::Analyze, Route::Research, Route::Chat, Route::Ops];
        let near = Incoming { local_only: true, far: &far, ..incoming(&text) };
        let decision = decided(&near);
        prop_assert!(decision.is_refused || !decision.local_only);
        prop_assert!(decision.request.len() <= text.len());
    }

    /// The classifier's words alone never choose CODE.
    #[test]
    fn a_model_that_quotes_nothing_chooses_no_code(confidence in 0u8..=100, evidence in "[a-z ]{0,40}") {
        let text = "hm, well";
        prop_assume!(!text.contains(evidence.trim()));
        let Step::Unsure(unsure) = decide(&incoming(text), Rules::shipped()) else { panic!("decided") };
        let said = Classified { route: Route::Code, confidence, reason: String::new(), evidence: vec![evidence] };
        let (decision, doubt) = unsure.with(Ok(said), Rules::shipped(), USUAL);
        prop_assert_eq!(decision.route, Route::Chat);
        prop_assert!(doubt.is_some());
    }
}
