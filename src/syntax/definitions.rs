//! The definitions of each language, by the kinds of nodes in its grammar.
//!
//! The tables are the program's own: the queries that grammars ship differ from version to version,
//! and one that does not fit its grammar fails at run time.

use tree_sitter::Node;

use super::Kind;
use super::language::Language;

/// Most steps from the declarator of a function in C to its name.
const DEEPEST_DECLARATOR: usize = 12;

/// Returns kind and name of what a node defines, if it defines something with a name; `of` is the
/// node's own kind in the grammar.
pub(super) fn defined<'t>(language: Language, node: Node<'_>, of: &str, text: &'t str) -> Option<(Kind, &'t str)> {
    let kind = match language {
        Language::Python => python(of),
        Language::JavaScript | Language::TypeScript | Language::Tsx => return of_script(node, of, text),
        Language::Java => java(of),
        Language::Go => go(of),
        Language::Rust => rust(of),
        Language::C | Language::Cpp => return of_c(node, of, text),
        Language::Ruby => ruby(of),
        Language::Markdown | Language::Configuration | Language::Other => None,
    }?;
    let name = node
        .child_by_field_name("name")
        .or_else(|| node.child_by_field_name("type"))?;
    Some((kind, word(name, text)?))
}

fn python(node: &str) -> Option<Kind> {
    match node {
        "function_definition" => Some(Kind::Function),
        "class_definition" => Some(Kind::Class),
        _ => None,
    }
}

fn java(node: &str) -> Option<Kind> {
    match node {
        "class_declaration" | "record_declaration" | "enum_declaration" => Some(Kind::Class),
        "interface_declaration" | "annotation_type_declaration" => Some(Kind::Type),
        "method_declaration" | "constructor_declaration" => Some(Kind::Method),
        _ => None,
    }
}

fn go(node: &str) -> Option<Kind> {
    match node {
        "function_declaration" => Some(Kind::Function),
        "method_declaration" => Some(Kind::Method),
        "type_spec" => Some(Kind::Type),
        _ => None,
    }
}

fn rust(node: &str) -> Option<Kind> {
    match node {
        "function_item" | "function_signature_item" => Some(Kind::Function),
        "struct_item" | "enum_item" | "union_item" | "impl_item" => Some(Kind::Class),
        "trait_item" | "type_item" => Some(Kind::Type),
        "mod_item" => Some(Kind::Module),
        "macro_definition" => Some(Kind::Macro),
        _ => None,
    }
}

fn ruby(node: &str) -> Option<Kind> {
    match node {
        "method" | "singleton_method" => Some(Kind::Method),
        "class" => Some(Kind::Class),
        "module" => Some(Kind::Module),
        _ => None,
    }
}

/// Functions of scripts are often values: of a variable, of a member, of a key.
fn of_script<'t>(node: Node<'_>, of: &str, text: &'t str) -> Option<(Kind, &'t str)> {
    let named = |kind, field: &str| Some((kind, word(node.child_by_field_name(field)?, text)?));
    let holds_function = |field: &str| {
        let value = node.child_by_field_name(field);
        value.is_some_and(|value| {
            matches!(
                value.kind(),
                "arrow_function" | "function_expression" | "function" | "generator_function"
            )
        })
    };
    match of {
        "function_declaration" | "generator_function_declaration" | "function_signature" => {
            named(Kind::Function, "name")
        }
        "method_definition" | "method_signature" | "abstract_method_signature" => named(Kind::Method, "name"),
        "class_declaration" | "abstract_class_declaration" | "enum_declaration" => named(Kind::Class, "name"),
        "interface_declaration" | "type_alias_declaration" => named(Kind::Type, "name"),
        "internal_module" | "module" => named(Kind::Module, "name"),
        "variable_declarator" if holds_function("value") => named(Kind::Function, "name"),
        "pair" if holds_function("value") => named(Kind::Method, "key"),
        "assignment_expression" if holds_function("right") => {
            let left = node.child_by_field_name("left")?;
            let name = left.child_by_field_name("property").unwrap_or(left);
            Some((Kind::Function, word(name, text)?))
        }
        _ => None,
    }
}

fn of_c<'t>(node: Node<'_>, of: &str, text: &'t str) -> Option<(Kind, &'t str)> {
    let named = |kind| Some((kind, word(node.child_by_field_name("name")?, text)?));
    match of {
        "function_definition" => {
            let mut declarator = node.child_by_field_name("declarator")?;
            for _ in 0..DEEPEST_DECLARATOR {
                let inner = declarator
                    .child_by_field_name("declarator")
                    .or_else(|| declarator.child_by_field_name("name"));
                match inner {
                    Some(inner) => declarator = inner,
                    None => break,
                }
            }
            Some((Kind::Function, word(declarator, text)?))
        }
        "struct_specifier" | "class_specifier" | "union_specifier" | "enum_specifier" => {
            node.child_by_field_name("body")?;
            named(Kind::Class)
        }
        "namespace_definition" => named(Kind::Module),
        "preproc_function_def" => named(Kind::Macro),
        "type_definition" => Some((Kind::Type, word(node.child_by_field_name("declarator")?, text)?)),
        _ => None,
    }
}

/// Returns the name of what a node refers to, if it is the name in a call, a type, an import or a
/// class that is extended.
pub(super) fn referred<'t>(node: Node<'_>, of: &str, around: [&str; 2], text: &'t str) -> Option<&'t str> {
    let is_type = of == "type_identifier";
    if !is_type
        && !matches!(
            of,
            "identifier" | "field_identifier" | "property_identifier" | "constant"
        )
    {
        return None;
    }
    let tells = |kind: &str| {
        [
            "call",
            "invocation",
            "new_expression",
            "macro",
            "import",
            "use_",
            "scoped",
            "decorator",
            "superclass",
        ]
        .iter()
        .any(|part| kind.contains(part))
    };
    let is_member = || {
        [
            "attribute",
            "member_expression",
            "field_expression",
            "selector_expression",
        ]
        .contains(&around[0])
    };
    let is_use = is_type
        || tells(around[0])
        || (is_member() && tells(around[1]))
        || around == ["argument_list", "class_definition"];
    if is_use { word(node, text) } else { None }
}

/// Returns the text of a node, if it can be a name.
fn word<'t>(node: Node<'_>, text: &'t str) -> Option<&'t str> {
    let word = text.get(node.byte_range())?;
    let word = word.rsplit([':', '.']).next().unwrap_or(word);
    let word = word
        .split(['<', '('])
        .next()
        .unwrap_or(word)
        .trim_matches(['"', '\'', '`', ' ', '*', '&']);
    let is_name = !word.is_empty() && word.len() <= super::words::LONGEST && !word.contains(char::is_whitespace);
    is_name.then_some(word)
}
