//! The words and operators of shell commands.

/// Deepest nesting that is read; deeper commands are let pass.
pub(super) const DEEPEST: usize = 20;
/// Longest `((...))` that is recognized: looking for the end of each of many would take for ever.
const LONGEST_ARITHMETIC: usize = 500;

/// Returns the tokens of a script, up to its end.
pub(super) fn of(text: &str) -> Result<Vec<Token>, String> {
    let letters: Vec<char> = text.replace("\\\n", " ").chars().collect();
    let mut lexer = Lexer {
        letters: &letters,
        at: 0,
        heredocs: Vec::new(),
        inside: Vec::new(),
    };
    lexer.tokens(None, 0)
}

/// A word as it is written, with the scripts in its substitutions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) inside: Vec<Vec<Token>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(Word),
    Operator(&'static str),
    Newline,
    End,
}

impl Token {
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Word(word) => format!("`{}`", word.text),
            Self::Operator(operator) => format!("`{operator}`"),
            Self::Newline => "end of the line".to_owned(),
            Self::End => "end".to_owned(),
        }
    }
}

/// Longer ones first.
const OPERATORS: [&str; 23] = [
    "<<<", ";;&", "&>>", "<<-", "&&", "||", ";;", ";&", "|&", "<<", ">>", "<&", ">&", "<>", ">|", "&>", ";", "&", "|",
    "(", ")", "<", ">",
];

/// Words behind which a command begins.
const BEFORE_COMMANDS: [&str; 9] = ["if", "then", "elif", "else", "while", "until", "do", "{", "!"];

/// Tells whether a command begins behind these tokens: `case` as an argument is a word like others.
fn begins_command(tokens: &[Token]) -> bool {
    match tokens.last() {
        None | Some(Token::Newline) => true,
        Some(Token::Operator(operator)) => {
            [";", "&", "&&", "||", "|", "|&", "(", ")", ";;", ";&", ";;&"].contains(operator)
        }
        Some(Token::Word(word)) => BEFORE_COMMANDS.contains(&word.text.as_str()),
        Some(Token::End) => false,
    }
}

struct Lexer<'a> {
    letters: &'a [char],
    at: usize,
    /// Words that end the documents which begin on the next line.
    heredocs: Vec<String>,
    /// The scripts inside the word that is being read.
    inside: Vec<Vec<Token>>,
}

impl Lexer<'_> {
    /// Reads up to the end, or up to the parenthesis that closes what is read.
    fn tokens(&mut self, closing: Option<char>, depth: usize) -> Result<Vec<Token>, String> {
        let mut tokens = Vec::new();
        let mut open = 0_usize;
        let mut cases = 0_usize;
        loop {
            while self.peek().is_some_and(|letter| matches!(letter, ' ' | '\t' | '\r')) {
                self.at += 1;
            }
            let Some(letter) = self.peek() else {
                if closing.is_some() {
                    return Err("`$(` is not closed".to_owned());
                }
                tokens.push(Token::End);
                return Ok(tokens);
            };
            if letter == '#' {
                while self.peek().is_some_and(|letter| letter != '\n') {
                    self.at += 1;
                }
            } else if letter == '\n' {
                self.at += 1;
                tokens.push(Token::Newline);
                self.skip_heredocs();
            } else if let Some(operator) = self.operator() {
                if operator == ")" && closing.is_some() && open == 0 && cases == 0 {
                    self.at += 1;
                    tokens.push(Token::End);
                    return Ok(tokens);
                }
                self.operator_token(operator, &mut tokens, &mut open, depth)?;
            } else {
                let word = self.word(depth)?;
                match word.text.as_str() {
                    "case" if begins_command(&tokens) => cases += 1,
                    "esac" if begins_command(&tokens) => cases = cases.saturating_sub(1),
                    _ => {}
                }
                if let Some(Token::Operator("<<" | "<<-")) = tokens.last() {
                    self.heredocs.push(word.text.replace(['\'', '"', '\\'], ""));
                }
                tokens.push(Token::Word(word));
            }
        }
    }

    fn operator_token(
        &mut self,
        operator: &'static str,
        tokens: &mut Vec<Token>,
        open: &mut usize,
        depth: usize,
    ) -> Result<(), String> {
        // Process substitution is a word, and so is arithmetic.
        let next = self.letters.get(self.at + 1).copied();
        if matches!(operator, "<" | ">") && next == Some('(') {
            self.at += 2;
            self.substitution(depth)?;
            let inside = self.inside.pop().into_iter().collect();
            let text = "<()".to_owned();
            tokens.push(Token::Word(Word { text, inside }));
            return Ok(());
        }
        if operator == "(" && next == Some('(') && self.skip_arithmetic() {
            let text = "(())".to_owned();
            tokens.push(Token::Word(Word {
                text,
                inside: Vec::new(),
            }));
            return Ok(());
        }
        match operator {
            "(" => *open += 1,
            ")" => *open = open.saturating_sub(1),
            _ => {}
        }
        self.at += operator.chars().count();
        tokens.push(Token::Operator(operator));
        Ok(())
    }

    fn word(&mut self, depth: usize) -> Result<Word, String> {
        let start = self.at;
        while let Some(letter) = self.peek() {
            match letter {
                ' ' | '\t' | '\r' | '\n' => break,
                '\\' => self.at += 2,
                '\'' => self.skip_to('\'', "a single quote is not closed")?,
                '"' => self.double_quoted(depth)?,
                '`' => self.backquoted()?,
                '$' => self.dollar(depth)?,
                // Extended patterns: !(a|b).
                '!' | '?' | '*' | '+' | '@' if self.letters.get(self.at + 1) == Some(&'(') && self.at > start => {
                    self.skip_to(')', "a pattern is not closed")?;
                }
                _ if self.operator().is_some() => break,
                _ => self.at += 1,
            }
        }
        self.at = self.at.min(self.letters.len());
        Ok(Word {
            text: self.letters[start..self.at].iter().collect(),
            inside: std::mem::take(&mut self.inside),
        })
    }

    fn double_quoted(&mut self, depth: usize) -> Result<(), String> {
        self.at += 1;
        while let Some(letter) = self.peek() {
            match letter {
                '"' => {
                    self.at += 1;
                    return Ok(());
                }
                '\\' => self.at += 2,
                '`' => self.backquoted()?,
                '$' => self.dollar(depth)?,
                _ => self.at += 1,
            }
        }
        Err("a double quote is not closed".to_owned())
    }

    fn dollar(&mut self, depth: usize) -> Result<(), String> {
        self.at += 1;
        match self.peek() {
            Some('(') if self.letters.get(self.at + 1) == Some(&'(') && self.skip_arithmetic() => Ok(()),
            Some('(') => {
                self.at += 1;
                self.substitution(depth)
            }
            Some('{') => self.skip_braces(),
            Some('\'') => {
                self.at += 1;
                while let Some(letter) = self.peek() {
                    self.at += if letter == '\\' { 2 } else { 1 };
                    if letter == '\'' {
                        return Ok(());
                    }
                }
                Err("a single quote is not closed".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Reads what stands in `$(...)`, behind the parenthesis.
    fn substitution(&mut self, depth: usize) -> Result<(), String> {
        if depth > DEEPEST {
            self.at = self.letters.len();
            return Ok(());
        }
        let outside = std::mem::take(&mut self.inside);
        let tokens = self.tokens(Some(')'), depth + 1)?;
        self.inside = outside;
        self.inside.push(tokens);
        Ok(())
    }

    fn skip_braces(&mut self) -> Result<(), String> {
        let mut depth = 0_usize;
        while let Some(letter) = self.peek() {
            match letter {
                '\\' => self.at += 1,
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
        Err("`${` is not closed".to_owned())
    }

    fn backquoted(&mut self) -> Result<(), String> {
        self.skip_to('`', "a backquote is not closed")
    }

    /// Goes behind the next `end`, from a sign that opens.
    fn skip_to(&mut self, end: char, fault: &str) -> Result<(), String> {
        self.at += 1;
        while let Some(letter) = self.peek() {
            self.at += if letter == '\\' && end != '\'' { 2 } else { 1 };
            if letter == end {
                return Ok(());
            }
        }
        Err(fault.to_owned())
    }

    /// Goes behind `((...))`, if that is what stands here.
    fn skip_arithmetic(&mut self) -> bool {
        let mut depth = 0_usize;
        for (offset, letter) in self.letters[self.at..].iter().take(LONGEST_ARITHMETIC).enumerate() {
            match letter {
                '(' => depth += 1,
                ')' => depth -= 1,
                '\n' | '"' | '\'' => return false,
                _ => {}
            }
            if depth == 0 {
                let is_double = self.letters[self.at + offset - 1] == ')';
                if is_double {
                    self.at += offset + 1;
                }
                return is_double;
            }
        }
        false
    }

    fn skip_heredocs(&mut self) {
        for end in std::mem::take(&mut self.heredocs) {
            while self.at < self.letters.len() {
                let rest = &self.letters[self.at..];
                let length = rest.iter().position(|letter| *letter == '\n').unwrap_or(rest.len());
                let line: String = rest[..length].iter().collect();
                self.at = (self.at + length + 1).min(self.letters.len());
                if line.trim_start_matches('\t') == end {
                    break;
                }
            }
        }
    }

    fn operator(&self) -> Option<&'static str> {
        let starts = |operator: &&&str| {
            let mut letters = operator.chars().enumerate();
            letters.all(|(place, letter)| self.letters.get(self.at + place) == Some(&letter))
        };
        OPERATORS.iter().find(starts).copied()
    }

    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }
}
