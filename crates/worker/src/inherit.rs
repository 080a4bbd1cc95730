//! Lets forked workers inherit the code that their parent has in use.
//!
//! After a fork, the system leaves the child to fault in every page of code and constants again,
//! because those mappings are backed by a file. For a compiler of a gigabyte that costs some
//! milliseconds, more than most passes. A private mapping of which one page has been written to
//! is inherited instead, at a cost for each page that is mapped. So the pages that were needed
//! only to start are given back first ([`forget_start_up`]), then the compiler warms up, then one
//! page of each mapping is rewritten with its own content ([`prepare`]).

#![allow(unsafe_code, reason = "madvise, mprotect, and a write of a byte onto itself")]

use std::fs;

/// Mappings below this size cost little either way.
const LARGE: usize = 1 << 20;

/// A private, read-only mapping of a file, none of whose pages differ from the file.
#[derive(Debug, PartialEq)]
struct Mapping {
    start: usize,
    length: usize,
    protection: i32,
}

/// Gives back the pages that were needed only to start. They are read again where needed.
pub fn forget_start_up() {
    for mapping in clean_file_mappings() {
        // SAFETY: no page of the mapping differs from the file, so that the next access finds
        // the same bytes.
        unsafe {
            libc::madvise(mapping.address().cast(), mapping.length, libc::MADV_DONTNEED);
        }
    }
}

/// Makes forks inherit what is mapped now. Where it is not allowed, forked workers are merely
/// slower at first.
pub fn prepare() {
    for mapping in clean_file_mappings() {
        let address = mapping.address();
        // SAFETY: the range is a mapping of this process that stays for its whole life. For the
        // moment between the two calls it is writable as well; no other thread runs. The byte is
        // written with the value it has.
        unsafe {
            let writable = mapping.protection | libc::PROT_WRITE;
            if libc::mprotect(address.cast(), mapping.length, writable) == 0 {
                address.write_volatile(address.read_volatile());
                libc::mprotect(address.cast(), mapping.length, mapping.protection);
            }
        }
    }
}

impl Mapping {
    fn address(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.start)
    }
}

fn clean_file_mappings() -> Vec<Mapping> {
    parse(&fs::read_to_string("/proc/self/smaps").unwrap_or_default())
}

/// Each mapping is a head line and lines of `Key: value kB`.
fn parse(smaps: &str) -> Vec<Mapping> {
    let mut found = Vec::new();
    let mut current = None;
    for line in smaps.lines() {
        if let Some(kilobytes) = line.strip_prefix("Anonymous:") {
            if let Some(mapping) = current.take()
                && kilobytes.trim() == "0 kB"
            {
                found.push(mapping);
            }
        } else if !line.split_whitespace().next().is_some_and(|key| key.ends_with(':')) {
            current = large_file_mapping(line);
        }
    }
    found
}

fn large_file_mapping(head: &str) -> Option<Mapping> {
    let mut fields = head.split_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let protection = match fields.next()? {
        "r-xp" => libc::PROT_READ | libc::PROT_EXEC,
        "r--p" => libc::PROT_READ,
        _ => return None,
    };
    let file = fields.nth(3)?;
    let start = usize::from_str_radix(start, 16).ok()?;
    let length = usize::from_str_radix(end, 16).ok()?.checked_sub(start)?;
    (file.starts_with('/') && length >= LARGE).then_some(Mapping { start, length, protection })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_mappings_that_equal_their_file_are_touched() {
        let smaps = "\
7f0000000000-7f0010000000 r-xp 00001000 fe:00 123   /lib/libbig.so.2
Size:             262144 kB
Anonymous:             0 kB
7f0010000000-7f0020000000 r--p 00001000 fe:00 123   /lib/libbig.so.2
Anonymous:            64 kB
7f0020000000-7f0020001000 r-xp 00001000 fe:00 124   /lib/libsmall.so
Anonymous:             0 kB
7f0030000000-7f0040000000 rw-p 00000000 00:00 0
Anonymous:             0 kB
";
        let expected = Mapping {
            start: 0x7f0000000000,
            length: 0x10000000,
            protection: libc::PROT_READ | libc::PROT_EXEC,
        };
        assert_eq!(parse(smaps), [expected]);
        assert_eq!(parse("noise\n"), []);
    }

    #[test]
    fn the_process_goes_on_after_it() {
        forget_start_up();
        prepare();
        assert_eq!(std::hint::black_box([1, 2, 3]).iter().sum::<i32>(), 6);
    }
}
