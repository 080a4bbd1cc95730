//! HLO text as the engine prints it, one instruction a line, taken apart and put together again.

use std::collections::{HashMap, HashSet};

/// One instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// Its line in the text.
    pub line: usize,
    /// Of which computation.
    pub computation: usize,
    /// Whether it is the result of that.
    pub root: bool,
    /// With its `%`.
    pub name: String,
    /// With its layout.
    pub shape: String,
    /// What it does.
    pub opcode: String,
    /// Names with their `%`; of a constant, its value.
    pub operands: Vec<String>,
    /// The rest of the line, from the comma on.
    pub attributes: String,
}

/// What a computation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The program itself, a function, a branch, the body of a loop.
    Body,
    /// Whether a loop goes on.
    Condition,
    /// What joins two elements of a reduction.
    Reducer,
    /// What joins an element and its update.
    Combiner,
    /// What orders two elements.
    Comparator,
}

/// A program in lines.
pub struct Program {
    /// As printed, without the comments that number long lists.
    pub lines: Vec<String>,
    /// In the order of the lines.
    pub instructions: Vec<Instruction>,
    /// Of each computation.
    pub roles: Vec<Role>,
    /// The computation where it begins.
    pub entry: usize,
    by_name: HashMap<String, usize>,
    live: HashSet<usize>,
}

impl Program {
    /// Takes a text apart; lines that are no instructions stay as they are.
    pub fn read(text: &str) -> Program {
        let lines: Vec<String> = text.lines().map(without_comments).collect();
        let mut instructions = Vec::new();
        let mut names = Vec::new();
        let mut entry = 0;
        for (number, line) in lines.iter().enumerate() {
            if line.ends_with('{') && !line.starts_with(' ') && line.contains('%') {
                if line.starts_with("ENTRY") {
                    entry = names.len();
                }
                let name = line.trim_start_matches("ENTRY ").split(' ').next().unwrap_or_default();
                names.push(name.to_owned());
            } else if !names.is_empty() {
                instructions.extend(Instruction::read(line, number, names.len() - 1));
            }
        }
        let by_name = instructions
            .iter()
            .enumerate()
            .map(|(place, instruction)| (instruction.name.clone(), place))
            .collect();
        let mut program = Program {
            roles: roles(&instructions, &names),
            lines,
            instructions,
            entry,
            by_name,
            live: HashSet::new(),
        };
        program.live = program.find_live(&names);
        program
    }

    /// Whether the program's results can hang on it at all.
    pub fn is_live(&self, place: usize) -> bool {
        self.live.contains(&place)
    }

    /// An instruction by its name.
    pub fn find(&self, name: &str) -> Option<&Instruction> {
        self.by_name.get(name).map(|place| &self.instructions[*place])
    }

    /// The shape of an operand.
    pub fn shape_of(&self, name: &str) -> Option<&str> {
        self.find(name).map(|instruction| &*instruction.shape)
    }

    /// What the computation is for in which an instruction is.
    pub fn role(&self, instruction: &Instruction) -> Role {
        self.roles[instruction.computation]
    }

    /// The text with other lines in place of one.
    pub fn with_line(&self, line: usize, text: &str) -> String {
        let mut all = String::new();
        for (number, old) in self.lines.iter().enumerate() {
            all.push_str(if number == line { text } else { old });
            all.push('\n');
        }
        all
    }

    fn find_live(&self, names: &[String]) -> HashSet<usize> {
        let root = |computation: usize| {
            self.instructions.iter().position(|i| i.root && i.computation == computation)
        };
        let roots: HashMap<&str, usize> = names
            .iter()
            .enumerate()
            .filter_map(|(number, name)| Some((&**name, root(number)?)))
            .collect();
        let mut open: Vec<usize> = root(self.entry).into_iter().collect();
        let mut live = HashSet::new();
        while let Some(place) = open.pop() {
            if !live.insert(place) {
                continue;
            }
            let instruction = &self.instructions[place];
            open.extend(instruction.operands.iter().filter_map(|name| self.by_name.get(name)));
            open.extend(references(&instruction.attributes).filter_map(|name| roots.get(name)));
        }
        live
    }
}

impl Instruction {
    fn read(line: &str, number: usize, computation: usize) -> Option<Instruction> {
        let text = line.trim_start();
        let (root, text) = match text.strip_prefix("ROOT ") {
            Some(text) => (true, text),
            None => (false, text),
        };
        let (name, text) = text.split_once(" = ")?;
        if !name.starts_with('%') {
            return None;
        }
        let end = if text.starts_with('(') { closing(text, 0)? + 1 } else { text.find(' ')? };
        let (shape, text) = text.split_at(end);
        let text = text.trim_start();
        let open = text.find('(')?;
        let close = closing(text, open)?;
        let inside = &text[open + 1..close];
        let opcode = &text[..open];
        let operands = match opcode {
            "constant" | "parameter" => vec![inside.to_owned()],
            _ => split(inside).into_iter().map(str::to_owned).collect(),
        };
        Some(Instruction {
            line: number,
            computation,
            root,
            name: name.to_owned(),
            shape: shape.to_owned(),
            opcode: opcode.to_owned(),
            operands,
            attributes: text[close + 1..].to_owned(),
        })
    }

    /// Its line.
    pub fn text(&self) -> String {
        let Instruction { name, shape, opcode, operands, attributes, .. } = self;
        let root = if self.root { "ROOT " } else { "" };
        format!("  {root}{name} = {shape} {opcode}({}){attributes}", operands.join(", "))
    }

    /// The value of an attribute, with its braces.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let (start, end) = self.place_of(name)?;
        Some(&self.attributes[start..end])
    }

    /// Gives an attribute another value.
    pub fn set_attribute(&mut self, name: &str, value: &str) {
        if let Some((start, end)) = self.place_of(name) {
            self.attributes.replace_range(start..end, value);
        }
    }

    fn place_of(&self, name: &str) -> Option<(usize, usize)> {
        let key = format!(", {name}=");
        let start = self.attributes.find(&key)? + key.len();
        let rest = &self.attributes[start..];
        let length = match rest.starts_with('{') {
            true => closing(rest, 0)? + 1,
            false => rest.find(", ").unwrap_or(rest.len()),
        };
        Some((start, start + length))
    }

    /// An attribute that is a list of numbers, such as `dimensions={0,2}`.
    pub fn numbers(&self, name: &str) -> Option<Vec<usize>> {
        let list = self.attribute(name)?.strip_prefix('{')?.strip_suffix('}')?;
        if list.is_empty() {
            return Some(Vec::new());
        }
        list.split(',').map(|number| number.trim().parse().ok()).collect()
    }

    /// Gives such an attribute another list.
    pub fn set_numbers(&mut self, name: &str, numbers: &[usize]) {
        let list: Vec<String> = numbers.iter().map(usize::to_string).collect();
        self.set_attribute(name, &format!("{{{}}}", list.join(",")));
    }
}

/// `f32` of `f32[4,8]{1,0}`.
pub fn dtype(shape: &str) -> &str {
    shape.split('[').next().unwrap_or_default()
}

/// `[4, 8]` of `f32[4,8]{1,0}`; nothing for a tuple.
pub fn dims(shape: &str) -> Option<Vec<usize>> {
    if shape.starts_with('(') {
        return None;
    }
    let list = shape.split_once('[')?.1.split_once(']')?.0;
    if list.is_empty() {
        return Some(Vec::new());
    }
    list.split(',').map(|number| number.parse().ok()).collect()
}

/// The same shape of another type.
pub fn of_type(shape: &str, dtype: &str) -> Option<String> {
    Some(format!("{dtype}{}", &shape[shape.find('[')?..]))
}

/// The parts of a list, whose own parts may have commas.
pub fn split(list: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (place, c) in list.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(list[start..place].trim());
                start = place + 1;
            }
            _ => {}
        }
    }
    if !list[start..].trim().is_empty() {
        parts.push(list[start..].trim());
    }
    parts
}

/// Where the bracket closes that opens at a place.
pub fn closing(text: &str, open: usize) -> Option<usize> {
    let mut depth = 0;
    let (mut quoted, mut escaped) = (false, false);
    for (place, c) in text.char_indices().skip_while(|(place, _)| *place < open) {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(place);
                }
            }
            _ => {}
        }
    }
    None
}

/// Names that attributes mention.
fn references(attributes: &str) -> impl Iterator<Item = &str> {
    attributes.match_indices('%').map(|(start, _)| {
        let rest = &attributes[start..];
        &rest[..rest.find([',', '}', ' ', ')']).unwrap_or(rest.len())]
    })
}

fn roles(instructions: &[Instruction], names: &[String]) -> Vec<Role> {
    let mut roles = vec![Role::Body; names.len()];
    let mut set = |name: Option<&str>, role: Role| {
        if let Some(place) = names.iter().position(|other| Some(&**other) == name) {
            roles[place] = role;
        }
    };
    for instruction in instructions {
        match &*instruction.opcode {
            "reduce" | "reduce-window" => set(instruction.attribute("to_apply"), Role::Reducer),
            "scatter" => set(instruction.attribute("to_apply"), Role::Combiner),
            "select-and-scatter" => {
                set(instruction.attribute("scatter"), Role::Combiner);
                set(instruction.attribute("select"), Role::Comparator);
            }
            "sort" => set(instruction.attribute("to_apply"), Role::Comparator),
            "while" => set(instruction.attribute("condition"), Role::Condition),
            _ => {}
        }
    }
    roles
}

fn without_comments(line: &str) -> String {
    let mut text = line.to_owned();
    while let Some(start) = text.find("/*index=") {
        let Some(length) = text[start..].find("*/") else { break };
        text.replace_range(start..start + length + 2, "");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "HloModule m

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

ENTRY %main (x: f32[4,8]) -> (f32[4], f32[4,8]) {
  %x = f32[4,8]{1,0} parameter(0)
  %z = f32[] constant(0)
  %dead = f32[4,8]{1,0} negate(%x)
  %r = f32[4]{0} reduce(%x, %z), dimensions={1}, to_apply=%sum, metadata={op_name=\"a}{(\"}
  ROOT %t = (f32[4]{0}, /*index=1*/f32[4,8]{1,0}) tuple(%r, /*index=1*/%x)
}
";

    #[test]
    fn a_line_is_taken_apart_and_put_together() {
        let program = Program::read(TEXT);
        for instruction in &program.instructions {
            assert_eq!(instruction.text(), program.lines[instruction.line]);
        }
        let reduce = program.find("%r").unwrap();
        assert_eq!(reduce.operands, ["%x", "%z"]);
        assert_eq!(reduce.numbers("dimensions"), Some(vec![1]));
        assert_eq!(program.find("%t").unwrap().operands, ["%r", "%x"]);
        let mut other = reduce.clone();
        other.set_numbers("dimensions", &[0]);
        assert!(other.text().contains("dimensions={0}, to_apply=%sum, metadata"));
    }

    #[test]
    fn what_a_computation_is_for_and_what_never_matters_is_known() {
        let program = Program::read(TEXT);
        assert_eq!(program.roles, [Role::Reducer, Role::Body]);
        let live = |name: &str| {
            program.is_live(program.instructions.iter().position(|i| i.name == name).unwrap())
        };
        assert!(live("%s") && live("%x") && live("%z") && !live("%dead"));
    }

    #[test]
    fn shapes_are_read() {
        assert_eq!((dtype("bf16[2,3]{1,0}"), dims("bf16[2,3]{1,0}")), ("bf16", Some(vec![2, 3])));
        assert_eq!(dims("s32[]"), Some(vec![]));
        assert_eq!(dims("(s32[], f32[2])"), None);
        assert_eq!(of_type("f32[2]{0}", "bf16").as_deref(), Some("bf16[2]{0}"));
        assert_eq!(split("[0:1], [2:3:4], {a, b}"), ["[0:1]", "[2:3:4]", "{a, b}"]);
    }
}
