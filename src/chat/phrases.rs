//! The program's own words, in English and Japanese.

use crate::routing::Route;

/// The language of the program's own words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wording {
    pub(super) is_japanese: bool,
}

impl Wording {
    /// Returns the words in the language.
    pub(super) fn of(self, english: &'static str, japanese: &'static str) -> &'static str {
        if self.is_japanese { japanese } else { english }
    }

    /// Returns a value behind its name.
    pub(super) fn field(self, english: &'static str, japanese: &'static str, value: &str) -> String {
        format!("{}: {value}", self.of(english, japanese))
    }
}

/// Something that the program says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phrase<'a> {
    Announced(Route),
    LocalOnly,
    Anywhere,
    /// The same, where there was something that no model elsewhere may read.
    Forgotten,
    /// Only near models are asked from now on, because of a repository.
    Confidential,
    /// The route's models are elsewhere.
    Refused(Route),
    NotLinked,
    MayNot(&'a str),
    NoRepository,
    NotConfigured(&'a str),
    WhatToDo,
    Opened(&'a str),
    CannotNow(&'a str),
    /// Said where the record of a run cannot be read.
    Unreadable(&'a str),
    NoAnswer(&'a str),
    NoModel,
    /// Said where only near models may be asked, and none is configured.
    NoNearModel,
    OpsList(&'a str),
    OpsUnknown(&'a str),
    OpsInterrupted(&'a str),
    NothingWaits,
    OtherDigest,
    Stranger,
    /// An answer does not say which question of these it is for.
    WhichQuestion(&'a str),
    Approved,
    Denied,
    Passed,
    AllPaused,
    DecidedBefore,
    /// The run refused an answer that was meant for what it waits for.
    NotTaken,
    TooMany,
    NeedsConfirmation,
    /// Only a model wants the route, which has effects: the person is to ask for it by a command.
    NeedsCommand(Route),
    NotHandedOver(&'a str),
    /// The seconds that a message may take are over.
    OutOfTime(u64),
    OutOfLoops(u32),
    NoWorkerAnswer,
    /// The answer to a message that breaks the program off.
    Broken,
}

impl Phrase<'_> {
    /// Returns the words, in Japanese where people speak it.
    pub(super) fn in_words(self, is_japanese: bool) -> String {
        if is_japanese { self.japanese() } else { self.english() }
    }

    fn english(self) -> String {
        match self {
            Self::Announced(route) => format!("_Now: {route}_"),
            Self::LocalOnly => "From now on only models on our own machines are asked here. `/cloud` ends that.".to_owned(),
            Self::Anywhere => "Models elsewhere may be asked again.".to_owned(),
            Self::Forgotten => {
                "Models elsewhere may be asked again. What was said here before is forgotten, so that they do not read it."
                    .to_owned()
            }
            Self::Confidential => {
                "This is about a confidential repository: from now on only models on our own machines are asked here. `/cloud` \
                 ends that, and forgets what was said."
                    .to_owned()
            }
            Self::Refused(route) => format!(
                "{route} needs a model that is not on our own machines, and this conversation is set to `/local`. Nothing was \
                 sent. Write `/cloud` on a line of its own if it may be, and ask again."
            ),
            Self::NotLinked => {
                "Your account here is linked to no account of a forge, so we can only talk. Whoever runs me can link it in \
                 `allowed_users`."
                    .to_owned()
            }
            Self::MayNot(repository) => format!("Your account may not write to {repository}, so I do nothing there for you."),
            Self::NoRepository => {
                "Which repository? Write it at the beginning, like `github:owner/repo`; no `default_repository` is configured."
                    .to_owned()
            }
            Self::NotConfigured(repository) => format!("{repository} is not among the repositories that I work on."),
            Self::WhatToDo => "What is to be done? Write it behind the command.".to_owned(),
            Self::Opened(url) => format!("I opened {url} and start as soon as a worker is free."),
            Self::CannotNow(reason) => format!("That did not work: {reason}"),
            Self::Unreadable(reason) => format!("I cannot tell you how it stands: {reason}"),
            Self::NoAnswer(reason) => format!("I have no answer: {reason}"),
            Self::NoModel => "no model can be asked at the moment; try again later".to_owned(),
            Self::NoNearModel => {
                "only models on our own machines may be asked here, and none could be; whoever runs me can name one in \
                 `llm.roles.local_only`"
                    .to_owned()
            }
            Self::OpsList(list) => format!("These can be run:\n{list}"),
            Self::OpsUnknown(list) => format!("There is no such command, and nothing else is ever run. There are:\n{list}"),
            Self::OpsInterrupted(name) => format!(
                "I was stopped while `{name}` ran, and do not know whether it ended. I did not run it again; look at it, and ask \
                 for it anew if it is needed."
            ),
            Self::NothingWaits => "Nothing waits for that any more, so nothing was changed.".to_owned(),
            Self::OtherDigest => {
                "What waits now is something else than what you answered, so nothing was changed. Look at the newest question."
                    .to_owned()
            }
            Self::Stranger => "Only people whom my configuration names may answer here. Nothing was changed.".to_owned(),
            Self::WhichQuestion(list) => format!(
                "Which question do you mean? Nothing was changed. Look at what is asked there, and write `approve DIGEST` or \
                 `deny DIGEST why`, with the digest behind the address:\n{list}"
            ),
            Self::Approved => "Approved".to_owned(),
            Self::Denied => "Denied".to_owned(),
            Self::Passed => "It was passed on and takes effect at the next safe point.".to_owned(),
            Self::AllPaused => "All runs are paused; it goes on when that ends.".to_owned(),
            Self::DecidedBefore => "That is decided already, so nothing was changed.".to_owned(),
            Self::NotTaken => {
                "The run did not take that and waits as before. Decide on its page; if this happens again, whoever runs me should \
                 compare the clocks of the machines."
                    .to_owned()
            }
            Self::TooMany => {
                "Too much waits for an answer at the moment. What is said here until I have caught up is not taken; please say it \
                 again later."
                    .to_owned()
            }
            Self::NeedsConfirmation => "Please confirm, or say more, before I go on.".to_owned(),
            Self::NeedsCommand(Route::Ops) => {
                "That would run a command of whoever runs me, and your own words do not ask for it. If you want it, write `/ops` \
                 with its name; `/ops` alone lists them."
                    .to_owned()
            }
            Self::NeedsCommand(route) => format!(
                "That would go on as {route}, and your own words do not ask for it. If you want it, write `/code` with what is to \
                 be done."
            ),
            Self::NotHandedOver(pictures) => format!("These pictures do not go with it: {pictures}."),
            Self::OutOfTime(seconds) => format!(
                "I stopped here: the {seconds} s that one message may take (`chat.routing.max_millis`) were over. Ask for less at \
                 once, or have whoever runs me allow more."
            ),
            Self::OutOfLoops(loops) => format!(
                "I stopped here, after {loops} looks at the repository (`chat.routing.max_loops`). Ask on for more."
            ),
            Self::NoWorkerAnswer => {
                "I stopped here: the model that looks at the repository gave no answer that could be read. Try again, or ask in \
                 other words."
                    .to_owned()
            }
            Self::Broken => {
                "I cannot answer this: a fault of mine ended each attempt, and it stands in my log. Ask in other words, or tell \
                 whoever runs me."
                    .to_owned()
            }
        }
    }

    fn japanese(self) -> String {
        match self {
            Self::Announced(route) => format!("_ここからは{route}です_"),
            Self::LocalOnly => "ここでは手元のモデルだけを使います。`/cloud` で解除できます。".to_owned(),
            Self::Anywhere => "外部のモデルも使えるようにしました。".to_owned(),
            Self::Forgotten => {
                "外部のモデルも使えるようにしました。外部に送られないよう、ここまでの会話は忘れました。".to_owned()
            }
            Self::Confidential => {
                "機密のリポジトリの話なので、ここからは手元のモデルだけを使います。`/cloud` で解除でき、そのとき会話は忘れます。".to_owned()
            }
            Self::Refused(route) => format!(
                "{route}には外部のモデルが必要ですが、この会話は `/local` です。何も送っていません。送ってよければ `/cloud` と書いて、もう一度依頼してください。"
            ),
            Self::NotLinked => {
                "あなたのアカウントはフォージのアカウントと結び付けられていないため、会話だけができます。管理者が `allowed_users` で設定できます。"
                    .to_owned()
            }
            Self::MayNot(repository) => format!("あなたのアカウントには{repository}への書き込み権限がないため、何もしません。"),
            Self::NoRepository => {
                "どのリポジトリですか。最初に `github:owner/repo` のように書いてください(`default_repository` の設定がありません)。"
                    .to_owned()
            }
            Self::NotConfigured(repository) => format!("{repository}は対象のリポジトリに入っていません。"),
            Self::WhatToDo => "何をしますか。コマンドの後に書いてください。".to_owned(),
            Self::Opened(url) => format!("{url} を作成しました。空き次第、作業を始めます。"),
            Self::CannotNow(reason) => format!("できませんでした: {reason}"),
            Self::Unreadable(reason) => format!("状況をお伝えできません: {reason}"),
            Self::NoAnswer(reason) => format!("答えられません: {reason}"),
            Self::NoModel => "今はモデルに問い合わせできません。後でもう一度お試しください".to_owned(),
            Self::NoNearModel => {
                "ここで使えるのは手元のモデルだけですが、今は問い合わせできません。管理者が `llm.roles.local_only` で設定できます".to_owned()
            }
            Self::OpsList(list) => format!("実行できるもの:\n{list}"),
            Self::OpsUnknown(list) => format!("そのコマンドはありません。ほかのものは実行しません。実行できるもの:\n{list}"),
            Self::OpsInterrupted(name) => format!(
                "`{name}` の実行中に停止したため、終わったかどうか分かりません。もう一度は実行していません。確認して、必要なら改めて依頼してください。"
            ),
            Self::NothingWaits => "もう待っているものはありません。何も変更していません。".to_owned(),
            Self::OtherDigest => {
                "今待っているものは、お答えの対象とは別のものです。何も変更していません。最新の確認をご覧ください。".to_owned()
            }
            Self::Stranger => "設定で許可された人だけが答えられます。何も変更していません。".to_owned(),
            Self::WhichQuestion(list) => format!(
                "どの確認への答えですか。何も変更していません。次のページで内容をご覧のうえ、アドレスの後のダイジェストを添えて `approve ダイジェスト` または `deny ダイジェスト 理由` と書いてください。\n{list}"
            ),
            Self::Approved => "承認しました".to_owned(),
            Self::Denied => "却下しました".to_owned(),
            Self::Passed => "伝えました。次の区切りで反映されます。".to_owned(),
            Self::AllPaused => "すべての実行が一時停止中のため、再開後に進みます。".to_owned(),
            Self::DecidedBefore => "すでに決定済みです。何も変更していません。".to_owned(),
            Self::NotTaken => {
                "受け付けられず、まだ待っています。課題のページで決定してください。繰り返す場合は、管理者が各マシンの時計を確認してください。"
                    .to_owned()
            }
            Self::TooMany => {
                "今は返答待ちが多すぎます。追いつくまでの発言は受け付けられませんので、後でもう一度お願いします。".to_owned()
            }
            Self::NeedsConfirmation => "進める前に、確認または追加の情報をお願いします。".to_owned(),
            Self::NeedsCommand(Route::Ops) => {
                "運用コマンドの実行になりますが、あなた自身の言葉では依頼されていません。実行するなら `/ops` と名前を書いてください(`/ops` だけで一覧)。".to_owned()
            }
            Self::NeedsCommand(route) => format!(
                "{route}になりますが、あなた自身の言葉では依頼されていません。進めるなら `/code` に続けて内容を書いてください。"
            ),
            Self::NotHandedOver(pictures) => format!("次の画像は渡せませんでした: {pictures}"),
            Self::OutOfTime(seconds) => format!(
                "ここで止めました。1つのメッセージに使える{seconds}秒(`chat.routing.max_millis`)を超えたためです。範囲を狭めて依頼するか、管理者に延長を相談してください。"
            ),
            Self::OutOfLoops(loops) => {
                format!("リポジトリを{loops}回調べたところで止めました(`chat.routing.max_loops`)。続きが必要なら、もう一度依頼してください。")
            }
            Self::NoWorkerAnswer => {
                "ここで止めました。リポジトリを調べるモデルから読み取れる答えが得られませんでした。もう一度、または別の言い方で依頼してください。".to_owned()
            }
            Self::Broken => {
                "お答えできません。このプログラムの不具合で毎回中断しました(ログに記録があります)。別の言い方で試すか、管理者にお知らせください。".to_owned()
            }
        }
    }
}
