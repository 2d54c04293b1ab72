//! From text to [`ast`](super::ast), by the grammar of `grammar.pest`.

use std::collections::BTreeMap;

use pest::Parser as _;
use pest::error::{ErrorVariant, InputLocation};
use pest::iterators::{Pair, Pairs};

use super::ast::{
    Annotation, Arg, ArgValue, Body, Card, Constraint, ConstraintKind, Edge, File, Interface, Name,
    Node, Property,
};
use super::error::SourceError;
use super::scan;
use crate::schema::types::{PropType, PropertyConstraint, Scalar};
use crate::schema::vintage::SystemRole;

/// The generated parser; a module of its own because the generated items carry no documentation.
#[allow(missing_docs)]
mod generated {
    /// See `grammar.pest`.
    #[derive(pest_derive::Parser)]
    #[grammar = "schema/grammar.pest"]
    pub struct SchemaParser;
}

use generated::{Rule, SchemaParser};

/// Parse a source by the grammar alone (`docs/format/tables-and-schema.md` 4.1 and 4.2).
pub fn parse(source: &str) -> Result<File, SourceError> {
    scan::check(source)?;
    let pairs = SchemaParser::parse(Rule::file, source).map_err(|e| syntax_error(source, &e))?;
    let builder = Builder { source };
    let mut file = File::default();
    for pair in pairs.flat_map(Pair::into_inner) {
        match pair.as_rule() {
            Rule::interface => file.interfaces.push(builder.interface(pair)?),
            Rule::node => file.nodes.push(builder.node(pair)?),
            Rule::edge => file.edges.push(builder.edge(pair)?),
            _ => {}
        }
    }
    Ok(file)
}

fn syntax_error(source: &str, error: &pest::error::Error<Rule>) -> SourceError {
    let at = match error.location {
        InputLocation::Pos(at) | InputLocation::Span((at, _)) => at,
    };
    let found = match source.get(at..).and_then(|rest| rest.chars().next()) {
        None => "the end of the source".to_string(),
        Some(c) if c.is_control() || c == '\u{feff}' => format!("the character U+{:04X}", c as u32),
        Some(c) => format!("'{c}'"),
    };
    let message = match &error.variant {
        ErrorVariant::CustomError { message } => format!("the parser gave up: {message}"),
        ErrorVariant::ParsingError { positives, .. } => {
            let mut expected: Vec<&str> = Vec::new();
            for name in positives.iter().map(|rule| describe(*rule)) {
                if !expected.contains(&name) {
                    expected.push(name);
                }
            }
            match expected.as_slice() {
                [] => format!("found {found}, which cannot stand here"),
                [one] => format!("expected {one}, found {found}"),
                [most @ .., last] => {
                    format!("expected {} or {last}, found {found}", most.join(", "))
                }
            }
        }
    };
    SourceError::at(source, at, message)
}

/// How a syntax error calls what it expected.
fn describe(rule: Rule) -> &'static str {
    match rule {
        Rule::EOI => "the end of the source",
        Rule::file | Rule::WHITESPACE | Rule::COMMENT => "a declaration",
        Rule::interface | Rule::kw_interface => "'interface'",
        Rule::node | Rule::kw_node => "'node'",
        Rule::edge | Rule::kw_edge => "'edge'",
        Rule::implements | Rule::kw_implements => "'implements'",
        Rule::edge_body | Rule::open => "'{'",
        Rule::close => "'}'",
        Rule::card | Rule::at_card => "'@card'",
        Rule::property => "a property",
        Rule::prop_type
        | Rule::base
        | Rule::list
        | Rule::enum_type
        | Rule::vector
        | Rule::kw_enum
        | Rule::kw_vector => "a type",
        Rule::nullable => "'?'",
        Rule::constraint => "a constraint",
        Rule::constraint_name => "a constraint name",
        Rule::annotation => "an annotation",
        Rule::annotation_args | Rule::lparen => "'('",
        Rule::kwarg => "a keyword value",
        Rule::arg => "an argument",
        Rule::range_from | Rule::range_to => "a range",
        Rule::meta => "'@id', '@src' or '@dst'",
        Rule::role => "'id', 'src' or 'dst'",
        Rule::literal => "a literal",
        Rule::string => "a string",
        Rule::escape => "an escape sequence",
        Rule::float | Rule::integer | Rule::number => "a number",
        Rule::boolean => "'true' or 'false'",
        Rule::type_name => "a type name (upper case first)",
        Rule::ident => "a name (lower case first)",
        Rule::enum_value => "an enum value",
        Rule::at => "'@'",
        Rule::rparen => "')'",
        Rule::lbracket => "'['",
        Rule::rbracket => "']'",
        Rule::comma => "','",
        Rule::colon => "':'",
        Rule::arrow => "'->'",
        Rule::dots => "'..'",
        Rule::equals => "'='",
    }
}

/// Turns matched rules into the tree. The grammar guarantees which parts a rule has; a part that is
/// missing all the same is an error, not a panic.
struct Builder<'s> {
    source: &'s str,
}

impl<'s> Builder<'s> {
    fn error(&self, at: usize, message: impl Into<String>) -> SourceError {
        SourceError::at(self.source, at, message)
    }

    fn interface(&self, pair: Pair<'s, Rule>) -> Result<Interface, SourceError> {
        let at = start(&pair);
        let mut name = None;
        let mut properties = Vec::new();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::type_name => name = Some(named(&part)),
                Rule::property => properties.push(self.property(part)?),
                _ => {}
            }
        }
        Ok(Interface {
            name: self.part(at, name)?,
            properties,
        })
    }

    fn node(&self, pair: Pair<'s, Rule>) -> Result<Node, SourceError> {
        let at = start(&pair);
        let mut name = None;
        let mut annotations = Vec::new();
        let mut implements = Vec::new();
        let mut body = Body::default();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::type_name => name = Some(named(&part)),
                Rule::annotation => annotations.push(self.annotation(part)?),
                Rule::implements => {
                    implements = only(part.into_inner(), Rule::type_name)
                        .map(|p| named(&p))
                        .collect();
                }
                _ => self.body_item(part, &mut body)?,
            }
        }
        Ok(Node {
            name: self.part(at, name)?,
            annotations,
            implements,
            body,
        })
    }

    fn edge(&self, pair: Pair<'s, Rule>) -> Result<Edge, SourceError> {
        let at = start(&pair);
        let mut names = Vec::new();
        let mut card = None;
        let mut annotations = Vec::new();
        let mut body = Body::default();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::type_name => names.push(named(&part)),
                Rule::card => card = Some(self.card(part)?),
                Rule::annotation => annotations.push(self.annotation(part)?),
                Rule::edge_body => {
                    for item in part.into_inner() {
                        self.body_item(item, &mut body)?;
                    }
                }
                _ => {}
            }
        }
        let mut names = names.into_iter();
        Ok(Edge {
            name: self.part(at, names.next())?,
            from: self.part(at, names.next())?,
            to: self.part(at, names.next())?,
            card,
            annotations,
            body,
        })
    }

    fn card(&self, pair: Pair<'s, Rule>) -> Result<Card, SourceError> {
        let at = start(&pair);
        let mut numbers = only(pair.into_inner(), Rule::integer).map(|p| p.as_str().to_string());
        Ok(Card {
            min: self.part(at, numbers.next())?,
            max: numbers.next(),
            at,
        })
    }

    fn body_item(&self, item: Pair<'s, Rule>, body: &mut Body) -> Result<(), SourceError> {
        match item.as_rule() {
            Rule::property => body.properties.push(self.property(item)?),
            Rule::constraint => body.constraints.push(self.constraint(item)?),
            _ => {}
        }
        Ok(())
    }

    fn property(&self, pair: Pair<'s, Rule>) -> Result<Property, SourceError> {
        let at = start(&pair);
        let mut name = None;
        let mut prop_type = None;
        let mut annotations = Vec::new();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::ident => name = Some(named(&part)),
                Rule::prop_type => prop_type = Some((start(&part), self.prop_type(part)?)),
                Rule::annotation => annotations.push(self.annotation(part)?),
                _ => {}
            }
        }
        let (type_at, prop_type) = self.part(at, prop_type)?;
        Ok(Property {
            name: self.part(at, name)?,
            prop_type,
            type_at,
            annotations,
        })
    }

    fn prop_type(&self, pair: Pair<'s, Rule>) -> Result<PropType, SourceError> {
        let at = start(&pair);
        let mut result = PropType {
            scalar: Scalar::String,
            nullable: false,
            list: false,
            enum_values: None,
        };
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::base => result.scalar = self.base(&part)?,
                Rule::list => {
                    let base = only(part.into_inner(), Rule::base).next();
                    result.scalar = self.base(&self.part(at, base)?)?;
                    result.list = true;
                }
                Rule::enum_type => {
                    let values = only(part.into_inner(), Rule::enum_value);
                    result.enum_values = Some(values.map(|p| p.as_str().to_string()).collect());
                }
                Rule::vector => {
                    let digits = only(part.into_inner(), Rule::integer).next();
                    result.scalar = Scalar::Vector(self.dimension(&self.part(at, digits)?)?);
                }
                Rule::nullable => result.nullable = true,
                _ => {}
            }
        }
        Ok(result)
    }

    fn base(&self, pair: &Pair<'s, Rule>) -> Result<Scalar, SourceError> {
        let scalar = match pair.as_str() {
            "String" => Scalar::String,
            "Blob" => Scalar::Blob,
            "Bool" => Scalar::Bool,
            "I32" => Scalar::I32,
            "I64" => Scalar::I64,
            "U32" => Scalar::U32,
            "U64" => Scalar::U64,
            "F32" => Scalar::F32,
            "F64" => Scalar::F64,
            "DateTime" => Scalar::DateTime,
            "Date" => Scalar::Date,
            other => return Err(self.error(start(pair), format!("'{other}' is no type"))),
        };
        Ok(scalar)
    }

    fn dimension(&self, pair: &Pair<'s, Rule>) -> Result<u32, SourceError> {
        pair.as_str()
            .parse::<u32>()
            .ok()
            .filter(|n| (1..=i32::MAX.unsigned_abs()).contains(n))
            .ok_or_else(|| {
                self.error(
                    start(pair),
                    "a vector has at least 1 and at most 2147483647 dimensions",
                )
            })
    }

    fn annotation(&self, pair: Pair<'s, Rule>) -> Result<Annotation, SourceError> {
        let at = start(&pair);
        let mut name = None;
        let mut value = None;
        let mut kwargs = BTreeMap::new();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::ident => name = Some(part.as_str().to_string()),
                Rule::annotation_args => {
                    for arg in part.into_inner() {
                        match arg.as_rule() {
                            Rule::literal => value = Some(literal(&arg)),
                            Rule::ident => value = Some(arg.as_str().to_string()),
                            Rule::kwarg => {
                                let (keyword, text) = self.kwarg(arg)?;
                                kwargs.insert(keyword, text);
                            }
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(Annotation {
            name: self.part(at, name)?,
            value,
            kwargs,
            at,
        })
    }

    fn kwarg(&self, pair: Pair<'s, Rule>) -> Result<(String, String), SourceError> {
        let at = start(&pair);
        let mut keyword = None;
        let mut text = None;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::ident => keyword = Some(part.as_str().to_string()),
                Rule::literal => text = Some(literal(&part)),
                _ => {}
            }
        }
        Ok((self.part(at, keyword)?, self.part(at, text)?))
    }

    fn constraint(&self, pair: Pair<'s, Rule>) -> Result<Constraint, SourceError> {
        let at = start(&pair);
        let mut kind = None;
        let mut args = Vec::new();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::constraint_name => {
                    kind = match part.as_str() {
                        "range" => Some(ConstraintKind::Range),
                        "check" => Some(ConstraintKind::Check),
                        name => PropertyConstraint::from_name(name).map(ConstraintKind::Members),
                    };
                }
                Rule::arg => args.push(self.arg(part)?),
                _ => {}
            }
        }
        Ok(Constraint {
            kind: self.part(at, kind)?,
            args,
            at,
        })
    }

    fn arg(&self, pair: Pair<'s, Rule>) -> Result<Arg, SourceError> {
        let at = start(&pair);
        let inner = self.part(at, pair.into_inner().next())?;
        let value = match inner.as_rule() {
            Rule::range_from => {
                let mut numbers = only(inner.into_inner(), Rule::number);
                ArgValue::Range {
                    min: numbers.next().map(|p| p.as_str().to_string()),
                    max: numbers.next().map(|p| p.as_str().to_string()),
                }
            }
            Rule::range_to => ArgValue::Range {
                min: None,
                max: only(inner.into_inner(), Rule::number)
                    .next()
                    .map(|p| p.as_str().to_string()),
            },
            Rule::literal => match inner.as_str().strip_prefix('"') {
                Some(_) => ArgValue::Text(literal(&inner)),
                None => ArgValue::Other(inner.as_str().to_string()),
            },
            Rule::ident => ArgValue::Ident(inner.as_str().to_string()),
            Rule::meta => {
                let text = inner.as_str();
                let role = only(inner.into_inner(), Rule::role).next();
                let role = role.and_then(|p| SystemRole::from_name(p.as_str()));
                let role = self.part(at, role)?;
                ArgValue::Meta {
                    role,
                    spaced: text != role.meta(),
                }
            }
            _ => return Err(self.error(at, "the argument has no known form")),
        };
        Ok(Arg { value, at })
    }

    /// A part that the grammar says is there.
    fn part<T>(&self, at: usize, part: Option<T>) -> Result<T, SourceError> {
        part.ok_or_else(|| self.error(at, "the parser lost a part of what starts here"))
    }
}

fn start(pair: &Pair<'_, Rule>) -> usize {
    pair.as_span().start()
}

fn named(pair: &Pair<'_, Rule>) -> Name {
    Name {
        text: pair.as_str().to_string(),
        at: start(pair),
    }
}

fn only(pairs: Pairs<'_, Rule>, rule: Rule) -> impl Iterator<Item = Pair<'_, Rule>> {
    pairs.filter(move |pair| pair.as_rule() == rule)
}

/// A literal's value: a string decoded, anything else as written.
fn literal(pair: &Pair<'_, Rule>) -> String {
    let text = pair.as_str();
    match text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) {
        Some(quoted) => unescape(quoted),
        None => text.to_string(),
    }
}

/// Decode the five escapes; the grammar lets no other backslash through.
fn unescape(quoted: &str) -> String {
    let mut out = String::with_capacity(quoted.len());
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}
