//! The programs of the toy compiler, and the passes that mean well.
//!
//! A program is the line `toy` and then one instruction a line. Operands are the numbers of
//! earlier instructions, from 0; the last instruction is the result.

use std::fmt;

/// In the order of [`Program::opcodes`].
pub const OPCODES: [&str; 6] = ["input", "const", "add", "mul", "neg", "copy"];

/// Which of them is a constant.
pub const CONST: usize = 1;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Instruction {
    Input(i64),
    Const(i64),
    Add(usize, usize),
    Mul(usize, usize),
    Neg(usize),
    CopyOf(usize),
}

use Instruction::{Add, Const, CopyOf, Input, Mul, Neg};

impl Instruction {
    fn opcode(self) -> usize {
        match self {
            Input(_) => 0,
            Const(_) => CONST,
            Add(..) => 2,
            Mul(..) => 3,
            Neg(_) => 4,
            CopyOf(_) => 5,
        }
    }

    fn operands(self) -> Vec<usize> {
        match self {
            Input(_) | Const(_) => vec![],
            Add(a, b) | Mul(a, b) => vec![a, b],
            Neg(a) | CopyOf(a) => vec![a],
        }
    }

    /// The same on other operands.
    fn map(self, operand: impl Fn(usize) -> usize) -> Instruction {
        match self {
            Input(_) | Const(_) => self,
            Add(a, b) => Add(operand(a), operand(b)),
            Mul(a, b) => Mul(operand(a), operand(b)),
            Neg(a) => Neg(operand(a)),
            CopyOf(a) => CopyOf(operand(a)),
        }
    }
}

/// A program.
#[derive(Clone)]
pub struct Program {
    lines: Vec<Instruction>,
}

impl Program {
    /// Reads a program.
    pub fn parse(text: &str) -> Result<Program, String> {
        let mut text = text.lines();
        if text.next() != Some("toy") {
            return Err("the first line of a program is `toy`".to_owned());
        }
        let mut lines = Vec::new();
        for line in text {
            let instruction = parse_line(line, lines.len())
                .ok_or_else(|| format!("instruction {}: `{line}` makes no sense", lines.len()))?;
            lines.push(instruction);
        }
        Ok(Program { lines })
    }

    /// Number of instructions.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Instructions per opcode, in the order of [`OPCODES`].
    pub fn opcodes(&self) -> [u32; OPCODES.len()] {
        let mut counts = [0; OPCODES.len()];
        self.lines.iter().for_each(|line| counts[line.opcode()] += 1);
        counts
    }

    /// Instructions that compute.
    pub fn work(&self) -> usize {
        self.lines.iter().filter(|line| matches!(line, Add(..) | Mul(..) | Neg(_))).count()
    }

    /// Computes what depends on constants only.
    pub fn fold(&mut self) -> bool {
        self.rewrite(|before, line| {
            let value = |operand: usize| match before[operand] {
                Const(value) => Some(value),
                _ => None,
            };
            Some(Const(match line {
                Add(a, b) => value(a)?.wrapping_add(value(b)?),
                Mul(a, b) => value(a)?.wrapping_mul(value(b)?),
                Neg(a) => value(a)?.wrapping_neg(),
                Input(_) | Const(_) | CopyOf(_) => return None,
            }))
        })
    }

    /// Makes copies of `x + 0`, `x * 1` and `-(-x)`.
    pub fn simplify(&mut self) -> bool {
        self.rewrite(|before, line| match line {
            Add(x, zero) if before[zero] == Const(0) => Some(CopyOf(x)),
            Mul(x, one) if before[one] == Const(1) => Some(CopyOf(x)),
            Neg(inner) => match before[inner] {
                Neg(x) => Some(CopyOf(x)),
                _ => None,
            },
            _ => None,
        })
    }

    /// Makes copies of instructions that stand earlier in the program as well.
    pub fn dedup(&mut self) -> bool {
        self.rewrite(|before, line| match line {
            CopyOf(_) => None,
            _ => before.iter().position(|earlier| *earlier == line).map(CopyOf),
        })
    }

    /// Reads what was copied instead of the copy.
    pub fn copy_elim(&mut self) -> bool {
        let mut changed = self.rewrite(|before, line| {
            Some(line.map(|operand| match before[operand] {
                CopyOf(source) => source,
                _ => operand,
            }))
        });
        // Nothing reads the result, so a copy at the end becomes what it copies.
        if let Some(&CopyOf(source)) = self.lines.last() {
            let last = self.lines.len() - 1;
            self.lines[last] = self.lines[source];
            changed = true;
        }
        changed
    }

    /// Removes what the last line does not need, but leaves a line of every input: callers count on them.
    pub fn dead(&mut self) -> bool {
        let mut needed = vec![false; self.lines.len()];
        needed.last_mut().into_iter().for_each(|last| *last = true);
        for (at, line) in self.lines.iter().enumerate().rev() {
            if needed[at] {
                line.operands().into_iter().for_each(|operand| needed[operand] = true);
            }
        }
        for (at, line) in self.lines.iter().enumerate() {
            let read =
                || self.lines.iter().zip(&needed).any(|(other, needed)| *needed && other == line);
            needed[at] |= matches!(line, Input(_)) && !read();
        }
        let mut kept = Vec::new();
        let mut moved_to = Vec::new();
        for (line, needed) in self.lines.iter().zip(needed) {
            moved_to.push(kept.len());
            if needed {
                kept.push(line.map(|operand| moved_to[operand]));
            }
        }
        let changed = kept.len() < self.lines.len();
        self.lines = kept;
        changed
    }

    /// Writes `-x` as `x * -1`.
    pub fn lower(&mut self) -> bool {
        let mut lines: Vec<Instruction> = Vec::new();
        let mut moved_to = Vec::new();
        for line in &self.lines {
            let line = line.map(|operand| moved_to[operand]);
            if let Neg(operand) = line {
                lines.push(Const(-1));
                lines.push(Mul(operand, lines.len() - 1));
            } else {
                lines.push(line);
            }
            moved_to.push(lines.len() - 1);
        }
        let changed = lines.len() > self.lines.len();
        self.lines = lines;
        changed
    }

    /// Makes zero of `a + -b` where `a` and `b` look alike: they may be different inputs, and then it
    /// is wrong. Real compilers have such passes too.
    pub fn cancel(&mut self) -> bool {
        self.rewrite(|before, line| match line {
            Add(a, negated) => match before[negated] {
                Neg(b) if before[a].opcode() == before[b].opcode() => Some(Const(0)),
                _ => None,
            },
            _ => None,
        })
    }

    /// How many inputs there are: one more than the highest number.
    pub fn inputs(&self) -> usize {
        let number = |line: &Instruction| match line {
            Input(which) => usize::try_from(*which).ok(),
            _ => None,
        };
        self.lines.iter().filter_map(number).max().map_or(0, |highest| highest + 1)
    }

    /// What the last line is, given the inputs.
    pub fn evaluate(&self, inputs: &[i64]) -> i64 {
        let mut values: Vec<i64> = Vec::with_capacity(self.lines.len());
        for line in &self.lines {
            values.push(match *line {
                Input(which) => usize::try_from(which).map_or(0, |which| inputs[which]),
                Const(value) => value,
                Add(a, b) => values[a].wrapping_add(values[b]),
                Mul(a, b) => values[a].wrapping_mul(values[b]),
                Neg(a) => values[a].wrapping_neg(),
                CopyOf(a) => values[a],
            });
        }
        values.last().copied().unwrap_or_default()
    }

    /// How many values are needed at one time, at most.
    pub fn registers(&self) -> usize {
        let mut last_use: Vec<usize> = (0..self.lines.len()).collect();
        for (at, line) in self.lines.iter().enumerate() {
            line.operands().into_iter().for_each(|operand| last_use[operand] = at);
        }
        let live = |now: usize| (0..=now).filter(|&value| last_use[value] > now).count() + 1;
        (0..self.lines.len()).map(live).max().unwrap_or_default()
    }

    /// Adds one to every constant.
    pub fn shift(&mut self) -> bool {
        self.change_constants(|value| value.wrapping_add(1))
    }

    /// Multiplies every constant by three.
    pub fn scale(&mut self) -> bool {
        self.change_constants(|value| value.wrapping_mul(3))
    }

    fn change_constants(&mut self, change: impl Fn(i64) -> i64) -> bool {
        self.rewrite(|_, line| match line {
            Const(value) => Some(Const(change(value))),
            _ => None,
        })
    }

    /// Replaces each line, in order, by what `replace` makes of it and of the lines before it.
    fn rewrite(
        &mut self,
        replace: impl Fn(&[Instruction], Instruction) -> Option<Instruction>,
    ) -> bool {
        let mut changed = false;
        for at in 0..self.lines.len() {
            let (before, rest) = self.lines.split_at_mut(at);
            if let Some(new) = replace(before, rest[0]) {
                changed |= new != rest[0];
                rest[0] = new;
            }
        }
        changed
    }
}

/// More inputs than anybody needs: a number beyond would ask for that much memory.
const MOST_INPUTS: i64 = 1 << 16;

fn parse_line(line: &str, number: usize) -> Option<Instruction> {
    let mut words = line.split(' ');
    let opcode = words.next()?;
    let numbers: Vec<i64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let operand = |value: i64| usize::try_from(value).ok().filter(|operand| *operand < number);
    Some(match (opcode, numbers.as_slice()) {
        ("input", &[which]) if (0..MOST_INPUTS).contains(&which) => Input(which),
        ("const", &[value]) => Const(value),
        ("add", &[a, b]) => Add(operand(a)?, operand(b)?),
        ("mul", &[a, b]) => Mul(operand(a)?, operand(b)?),
        ("neg", &[a]) => Neg(operand(a)?),
        ("copy", &[a]) => CopyOf(operand(a)?),
        _ => return None,
    })
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "toy")?;
        for line in &self.lines {
            let opcode = OPCODES[line.opcode()];
            match line {
                Input(value) | Const(value) => writeln!(f, "{opcode} {value}")?,
                Add(a, b) | Mul(a, b) => writeln!(f, "{opcode} {a} {b}")?,
                Neg(a) | CopyOf(a) => writeln!(f, "{opcode} {a}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Program;

    /// x * (2 - 1) + x, the long way.
    const LONG: &str = "toy\ninput 0\nconst 2\nconst -1\nadd 1 2\nmul 0 3\ninput 0\nadd 4 5\n";

    fn check(passes: &[fn(&mut Program) -> bool], expected: &str) {
        let mut program = Program::parse(LONG).unwrap();
        for pass in passes {
            pass(&mut program);
        }
        assert_eq!(program.to_string(), expected);
        assert_eq!(Program::parse(expected).unwrap().to_string(), expected, "reads back");
    }

    #[test]
    fn the_best_order_leaves_two_lines_and_the_reverse_nearly_all() {
        let [fold, simplify, dedup, copies, dead] =
            [Program::fold, Program::simplify, Program::dedup, Program::copy_elim, Program::dead];
        check(&[], LONG);
        check(&[fold, simplify, dedup, copies, dead], "toy\ninput 0\nadd 0 0\n");
        check(
            &[dead, copies, dedup, simplify, fold],
            "toy\ninput 0\nconst 2\nconst -1\nconst 1\nmul 0 3\ncopy 0\nadd 4 5\n",
        );
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        for line in ["jump 0", "add 0", "neg 0", "add 0 -1", "const x", "const 1 2", ""] {
            let error = Program::parse(&format!("toy\n{line}\n")).err().unwrap();
            assert!(error.contains(&format!("`{line}`")), "{error}");
        }
        assert!(Program::parse("HloModule m").is_err());
    }
}
