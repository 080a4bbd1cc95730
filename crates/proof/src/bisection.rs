//! Which step of several is to blame.

/// The number of steps after which something is wrong for the first time, if it is wrong after all
/// of them and stays so once it is. Asks about as often as the number of steps has binary digits.
pub fn first_wrong<E>(
    steps: usize,
    mut is_wrong: impl FnMut(usize) -> Result<bool, E>,
) -> Result<usize, E> {
    let (mut good, mut bad) = (0, steps);
    while good + 1 < bad {
        let middle = (good + bad) / 2;
        if is_wrong(middle)? {
            bad = middle;
        } else {
            good = middle;
        }
    }
    Ok(bad)
}

#[cfg(test)]
mod tests {
    use super::first_wrong;

    #[test]
    fn the_first_wrong_step_is_found_with_few_questions() {
        for steps in 1..40 {
            for wrong in 1..=steps {
                let mut asked = 0;
                let found = first_wrong(steps, |step| {
                    asked += 1;
                    Ok::<bool, ()>(step >= wrong)
                });
                assert_eq!(found, Ok(wrong));
                assert!(1 << asked <= 2 * steps, "{asked} questions for {steps} steps");
            }
        }
    }

    #[test]
    fn who_cannot_answer_ends_it() {
        assert_eq!(first_wrong(8, |_| Err("no")), Err("no"));
    }
}
