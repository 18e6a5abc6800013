//! The grammar of shell commands, as far as it takes to see what cannot be parsed and which command
//! decides how a script ends.
//!
//! Bash is meant. What this reader does not know it lets pass: a fault is reported only where the
//! shell itself would report one.

use super::tokens::{self, DEEPEST, Token, Word};

const REDIRECTIONS: [&str; 11] = ["<<<", "&>>", "<<-", "<<", ">>", "<&", ">&", "<>", ">|", "&>", "<"];

/// A list of commands; the last one decides how it ends.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Script(pub(super) Vec<Chain>);

/// Pipelines joined by `&&` and `||`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) first: Pipeline,
    pub(super) rest: Vec<(Joint, Pipeline)>,
    pub(super) in_background: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joint {
    And,
    Or,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pipeline {
    pub(super) is_negated: bool,
    pub(super) commands: Vec<Command>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// The words as they are written, without redirections.
    Simple(Vec<String>),
    Group(Script),
    /// A loop, a condition, a function: how it ends is not looked at.
    Other,
}

/// Reads a script; the error says what is wrong with it.
pub(super) fn read(text: &str) -> Result<Script, String> {
    parsed(&tokens::of(text)?, 0)
}

/// Parses the tokens, and those of the scripts inside their words.
fn parsed(tokens: &[Token], depth: usize) -> Result<Script, String> {
    for token in tokens {
        if let Token::Word(word) = token {
            for inside in &word.inside {
                parsed(inside, depth + 1)?;
            }
        }
    }
    let mut parser = Parser { tokens, at: 0 };
    let script = parser.list(&[], depth)?;
    match parser.peek() {
        Token::End => Ok(script),
        token => Err(format!("unexpected {}", token.shown())),
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).unwrap_or(&Token::End)
    }

    fn is(&self, operator: &str) -> bool {
        matches!(self.peek(), Token::Operator(found) if *found == operator)
    }

    fn is_word(&self, words: &[&str]) -> bool {
        matches!(self.peek(), Token::Word(word) if words.contains(&word.text.as_str()))
    }

    fn skip_newlines(&mut self) {
        while *self.peek() == Token::Newline {
            self.at += 1;
        }
    }

    fn skip_separators(&mut self) {
        while *self.peek() == Token::Newline || self.is(";") {
            self.at += 1;
        }
    }

    /// Reads commands up to one of the words `ends`, a sign that closes, or the end.
    fn list(&mut self, ends: &[&str], depth: usize) -> Result<Script, String> {
        let mut chains = Vec::new();
        loop {
            self.skip_newlines();
            let closes = self.is(")") || self.is(";;") || self.is(";&") || self.is(";;&");
            if *self.peek() == Token::End || closes || self.is_word(ends) {
                return Ok(Script(chains));
            }
            let mut chain = self.chain(depth)?;
            if self.is("&") {
                chain.in_background = true;
            }
            chains.push(chain);
            if self.is(";") || self.is("&") {
                self.at += 1;
            } else if *self.peek() != Token::Newline
                && *self.peek() != Token::End
                && !self.is(")")
                && !self.is(";;")
                && !self.is(";&")
                && !self.is(";;&")
                && !self.is_word(ends)
            {
                return Err(format!("unexpected {}", self.peek().shown()));
            }
        }
    }

    fn chain(&mut self, depth: usize) -> Result<Chain, String> {
        let first = self.pipeline(depth)?;
        let mut rest = Vec::new();
        loop {
            let joint = match self.peek() {
                Token::Operator("&&") => Joint::And,
                Token::Operator("||") => Joint::Or,
                _ => break,
            };
            self.at += 1;
            self.skip_newlines();
            rest.push((joint, self.pipeline(depth)?));
        }
        Ok(Chain {
            first,
            rest,
            in_background: false,
        })
    }

    fn pipeline(&mut self, depth: usize) -> Result<Pipeline, String> {
        let mut is_negated = false;
        while self.is_word(&["!", "time"]) {
            is_negated ^= self.is_word(&["!"]);
            self.at += 1;
        }
        let mut commands = vec![self.command(depth)?];
        while self.is("|") || self.is("|&") {
            self.at += 1;
            self.skip_newlines();
            commands.push(self.command(depth)?);
        }
        Ok(Pipeline { is_negated, commands })
    }

    fn command(&mut self, depth: usize) -> Result<Command, String> {
        if depth > DEEPEST {
            self.at = self.tokens.len();
            return Ok(Command::Other);
        }
        if self.is("(") {
            self.at += 1;
            let script = self.list(&[], depth + 1)?;
            if !self.is(")") {
                return Err("`(` is not closed".to_owned());
            }
            self.at += 1;
            return self.redirected(Command::Group(script));
        }
        let Token::Word(Word { text: word, .. }) = self.peek().clone() else {
            return match self.peek() {
                Token::End | Token::Newline => Err("a command is missing at the end".to_owned()),
                token => Err(format!("a command is missing before {}", token.shown())),
            };
        };
        let other = match word.as_str() {
            "{" => {
                self.at += 1;
                let script = self.list(&["}"], depth + 1)?;
                self.closed_by("}", "{")?;
                return self.redirected(Command::Group(script));
            }
            "if" => self.condition(depth),
            "while" | "until" => {
                self.at += 1;
                self.list(&["do"], depth + 1)?;
                self.body(&word, depth)
            }
            "for" | "select" => self.counted(&word, depth),
            "case" => self.case(depth),
            "[[" => self.skip_behind("]]", "`[[` is not closed"),
            "function" => {
                self.at += 2;
                if self.is("(") {
                    self.at += 2;
                }
                self.skip_newlines();
                self.command(depth + 1).map(|_| ())
            }
            "then" | "fi" | "do" | "done" | "esac" | "elif" | "else" | "}" => {
                return Err(format!("unexpected `{word}`"));
            }
            _ => return self.simple(depth),
        };
        other?;
        self.redirected(Command::Other)
    }

    fn condition(&mut self, depth: usize) -> Result<(), String> {
        self.at += 1;
        self.list(&["then"], depth + 1)?;
        self.closed_by("then", "if")?;
        loop {
            self.list(&["elif", "else", "fi"], depth + 1)?;
            if self.is_word(&["elif"]) {
                self.at += 1;
                self.list(&["then"], depth + 1)?;
                self.closed_by("then", "elif")?;
            } else if self.is_word(&["else"]) {
                self.at += 1;
            } else {
                return self.closed_by("fi", "if");
            }
        }
    }

    fn body(&mut self, keyword: &str, depth: usize) -> Result<(), String> {
        self.closed_by("do", keyword)?;
        self.list(&["done"], depth + 1)?;
        self.closed_by("done", keyword)
    }

    fn counted(&mut self, keyword: &str, depth: usize) -> Result<(), String> {
        self.at += 2;
        self.skip_newlines();
        if self.is_word(&["in"]) {
            while matches!(self.peek(), Token::Word(_)) {
                self.at += 1;
            }
        }
        self.skip_separators();
        self.body(keyword, depth)
    }

    fn case(&mut self, depth: usize) -> Result<(), String> {
        self.at += 2;
        self.skip_newlines();
        self.closed_by("in", "case")?;
        loop {
            self.skip_newlines();
            if self.is_word(&["esac"]) {
                self.at += 1;
                return Ok(());
            }
            if self.is("(") {
                self.at += 1;
            }
            while matches!(self.peek(), Token::Word(_)) || self.is("|") {
                self.at += 1;
            }
            if !self.is(")") {
                return Err("`case` is not closed".to_owned());
            }
            self.at += 1;
            self.list(&["esac"], depth + 1)?;
            if self.is(";;") || self.is(";&") || self.is(";;&") {
                self.at += 1;
            }
        }
    }

    fn simple(&mut self, depth: usize) -> Result<Command, String> {
        let mut words: Vec<String> = Vec::new();
        loop {
            match self.peek().clone() {
                Token::Word(word) => {
                    words.push(word.text);
                    self.at += 1;
                }
                Token::Operator("(") => {
                    self.at += 1;
                    if words.last().is_some_and(|word| word.ends_with('=')) {
                        while matches!(self.peek(), Token::Word(_) | Token::Newline) {
                            self.at += 1;
                        }
                    } else if words.len() == 1 && self.is(")") {
                        self.at += 1;
                        self.skip_newlines();
                        self.command(depth + 1)?;
                        return Ok(Command::Other);
                    } else {
                        return Err("unexpected `(`".to_owned());
                    }
                    if !self.is(")") {
                        return Err("`(` is not closed".to_owned());
                    }
                    self.at += 1;
                }
                Token::Operator(operator) if is_redirection(operator) => self.redirection(&mut words)?,
                _ => return Ok(Command::Simple(words)),
            }
        }
    }

    fn redirection(&mut self, words: &mut Vec<String>) -> Result<(), String> {
        // The number of the stream stands before it.
        if words.last().is_some_and(|word| is_stream(word)) {
            words.pop();
        }
        let operator = self.peek().shown();
        self.at += 1;
        if !matches!(self.peek(), Token::Word(_)) {
            return Err(format!("a file is missing behind {operator}"));
        }
        self.at += 1;
        Ok(())
    }

    fn redirected(&mut self, command: Command) -> Result<Command, String> {
        loop {
            let is_stream = matches!(self.peek(), Token::Word(word) if is_stream(&word.text));
            if is_stream {
                self.at += 1;
            }
            match self.peek() {
                Token::Operator(operator) if is_redirection(operator) => self.redirection(&mut Vec::new())?,
                _ => return Ok(command),
            }
        }
    }

    fn skip_behind(&mut self, end: &str, fault: &str) -> Result<(), String> {
        while !self.is_word(&[end]) {
            if *self.peek() == Token::End {
                return Err(fault.to_owned());
            }
            self.at += 1;
        }
        self.at += 1;
        Ok(())
    }

    fn closed_by(&mut self, word: &str, opened: &str) -> Result<(), String> {
        if self.is_word(&[word]) {
            self.at += 1;
            return Ok(());
        }
        match self.peek() {
            Token::End => Err(format!("`{opened}` has no `{word}`")),
            token => Err(format!("unexpected {} where `{opened}` needs `{word}`", token.shown())),
        }
    }
}

/// Tells whether a word before a redirection is the number of a stream.
fn is_stream(word: &str) -> bool {
    word.len() == 1 && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_redirection(operator: &str) -> bool {
    REDIRECTIONS.contains(&operator) || operator == ">"
}
