//! Edits serialised protocol buffers without their definition.

/// Puts `value` into every field at the end of a path of field numbers.
pub fn edit(message: &[u8], path: &[u64], value: &Value) -> Vec<u8> {
    let mut rest = message;
    let mut out = Vec::new();
    while !rest.is_empty() {
        let tag = read_number(&mut rest);
        let (field, wire) = (tag >> 3, tag & 7);
        let old = match wire {
            0 => Value::Number(read_number(&mut rest)),
            2 => {
                let length = read_number(&mut rest) as usize;
                Value::Bytes(rest.split_off(..length).unwrap().to_vec())
            }
            // Numbers of fixed size: none of these is edited here.
            wire => Value::Fixed(rest.split_off(..if wire == 1 { 8 } else { 4 }).unwrap().to_vec()),
        };
        let new = match (&old, path) {
            (_, [last]) if *last == field => match (&old, value) {
                // Repeated numbers are packed into bytes.
                (Value::Bytes(_), Value::Number(number)) => {
                    let mut packed = Vec::new();
                    write_number(&mut packed, *number);
                    Value::Bytes(packed)
                }
                _ => value.clone(),
            },
            (Value::Bytes(inner), [first, further @ ..]) if *first == field => {
                Value::Bytes(edit(inner, further, value))
            }
            _ => old,
        };
        write_number(&mut out, tag);
        match new {
            Value::Number(number) => write_number(&mut out, number),
            Value::Fixed(bytes) => out.extend(bytes),
            Value::Bytes(bytes) => {
                write_number(&mut out, bytes.len() as u64);
                out.extend(bytes);
            }
        }
    }
    out
}

/// The value of a field.
#[derive(Clone)]
pub enum Value {
    Number(u64),
    Bytes(Vec<u8>),
    Fixed(Vec<u8>),
}

fn read_number(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.split_off_first().unwrap();
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    number
}

fn write_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
