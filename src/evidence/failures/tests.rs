//! Real output of test runners and compilers, shortened.

use super::*;
use proptest::prelude::*;

fn told(output: &str) -> String {
    let failures = read(output, "/workspace/project");
    failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn cargo_test() {
    let output = r"
running 3 tests
test tests::unwraps ... FAILED
test tests::adds ... FAILED
test tests::works ... ok

failures:

---- tests::unwraps stdout ----

thread 'tests::unwraps' (14983) panicked at src/lib.rs:9:32:
called `Option::unwrap()` on a `None` value
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace

---- tests::adds stdout ----

thread 'tests::adds' panicked at src/lib.rs:5:17:
assertion `left == right` failed
  left: -1
 right: 3

failures:
    tests::adds
    tests::unwraps

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.24s

error: test failed, to rerun pass `--lib`
";
    insta::assert_snapshot!(told(output), @"
    src/lib.rs:9 tests::unwraps: called `Option::unwrap()` on a `None` value
    src/lib.rs:5 tests::adds: assertion `left == right` failed
    ");
}

#[test]
fn rustc() {
    let output = "   Compiling rt v0.1.0 (/workspace/project)
\u{1b}[33mwarning\u{1b}[0m: unused variable: `x`
  --> src/main.rs:1:5
   |
error[E0308]: mismatched types
  --> src/lib.rs:11:17
   |
11 | fn x() -> i32 { \"a\" }
   |           ---   ^^^ expected `i32`, found `&str`

error: could not compile `rt` (lib) due to 1 previous error
warning: build failed, waiting for other jobs to finish...
";
    insta::assert_snapshot!(told(output), @"src/lib.rs:11: mismatched types");
}

#[test]
fn pytest() {
    let output = r"
..F.FE                                                                   [100%]
=================================== FAILURES ===================================
________________________________ test_adds[1-2] ________________________________

    def test_adds():
>       assert add(1, 2) == 3
E       assert -1 == 3
E        +  where -1 = add(1, 2)

tests/test_add.py:5: AssertionError
_______________________________ TestSum.test_deep ______________________________

    def test_deep():
>       total(None)

tests/test_sum.py:8:
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _

>   return sum(x)
E   TypeError: 'NoneType' object is not iterable

src/total.py:2: TypeError
=============================== warnings summary ===============================
tests/test_x.py:3: DeprecationWarning: old
_______________________ ERROR collecting tests/test_gone.py ____________________
tests/test_gone.py:1: in <module>
    import gone
E   ModuleNotFoundError: No module named 'gone'
=========================== short test summary info ============================
FAILED tests/test_add.py::test_adds[1-2] - assert -1 == 3
FAILED tests/test_sum.py::TestSum::test_deep - TypeError: 'NoneType' object i...
ERROR tests/test_gone.py
FAILED tests/test_short.py::test_only_named - AssertionError
3 failed, 3 passed in 0.05s
";
    insta::assert_snapshot!(told(output), @"
    tests/test_add.py:5 tests/test_add.py::test_adds[1-2]: assert -1 == 3
    src/total.py:2 tests/test_sum.py::TestSum::test_deep: TypeError: 'NoneType' object is not iterable
    tests/test_gone.py:1 tests/test_gone.py: ModuleNotFoundError: No module named 'gone'
    tests/test_short.py tests/test_short.py::test_only_named: AssertionError
    ");
}

#[test]
fn unittest() {
    let output = r#"FE
======================================================================
ERROR: test_y (test_a.A.test_y)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/workspace/project/test_a.py", line 6, in test_y
    total(None)
  File "/workspace/project/total.py", line 2, in total
    return sum(x)
  File "/usr/lib/python3.11/decimal.py", line 3, in sum
TypeError: 'NoneType' object is not iterable

======================================================================
FAIL: test_x (test_a.A.test_x)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/workspace/project/test_a.py", line 4, in test_x
    self.assertEqual(1, 2)
AssertionError: 1 != 2

----------------------------------------------------------------------
Ran 2 tests in 0.001s

FAILED (failures=1, errors=1)
"#;
    insta::assert_snapshot!(told(output), @"
    total.py:2 test_y (test_a.A.test_y): TypeError: 'NoneType' object is not iterable
    test_a.py:4 test_x (test_a.A.test_x): AssertionError: 1 != 2
    ");
}

#[test]
fn node() {
    let spec = r"✖ adds (2.195523ms)
  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:

  -1 !== 3

      at TestContext.<anonymous> (file:///workspace/project/test/add.test.mjs:5:10)
      at Test.runInAsyncScope (node:async_hooks:206:9) {
    code: 'ERR_ASSERTION',
  }

▶ group
  ✖ inner (0.146767ms)
    Error: boom
        at TestContext.<anonymous> (file:///workspace/project/test/add.test.mjs:7:53)

✖ failing tests:

test at test/add.test.mjs:4:1
✖ adds (2.195523ms)
  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:
";
    insta::assert_snapshot!(told(spec), @"
    test/add.test.mjs:5 adds: AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:
    test/add.test.mjs:7 inner: boom
    ");
    let tap = r"TAP version 13
# Subtest: adds
not ok 1 - adds
  ---
  duration_ms: 1.5
  location: '/workspace/project/test/add.test.mjs:4:1'
  failureType: 'testCodeFailure'
  error: |-
    Expected values to be strictly equal:

    -1 !== 3
  code: 'ERR_ASSERTION'
  ...
ok 2 - works
not ok 3 - throws
  ---
  location: '/workspace/project/test/add.test.mjs:9:1'
  error: 'boom'
  ...
";
    insta::assert_snapshot!(told(tap), @"
    test/add.test.mjs:4 adds: Expected values to be strictly equal:
    test/add.test.mjs:9 throws: boom
    ");
}

#[test]
fn jest_vitest_and_mocha() {
    let jest = r"FAIL src/sum.test.js
  sum
    ✕ adds (3 ms)

  ● sum › adds

    expect(received).toBe(expected) // Object.is equality

    Expected: 3
    Received: -1

      3 | test('adds', () => {
    > 4 |   expect(sum(1, 2)).toBe(3);

      at node_modules/jest/index.js:1:1
      at Object.toBe (src/sum.test.js:4:21)

Tests:       1 failed, 1 total
";
    insta::assert_snapshot!(told(jest), @"src/sum.test.js:4 sum › adds: expect(received).toBe(expected) // Object.is equality");
    let vitest = r" FAIL  src/sum.test.ts > sum > adds
AssertionError: expected -1 to be 3 // Object.is equality
 ❯ src/sum.test.ts:5:22
      4|   it('adds', () => {
";
    insta::assert_snapshot!(told(vitest), @"src/sum.test.ts:5 src/sum.test.ts > sum > adds: AssertionError: expected -1 to be 3 // Object.is equality");
    let mocha = r"  sum
    1) adds
    ✔ works

  0 passing (4ms)
  1 failing

  1) sum
       adds:

      AssertionError: expected -1 to equal 3
      + expected - actual
      at Context.<anonymous> (test/sum.js:6:26)
      at process.processImmediate (node:internal/timers:476:21)
";
    insta::assert_snapshot!(told(mocha), @"test/sum.js:6 adds: AssertionError: expected -1 to equal 3");
}

#[test]
fn go() {
    let output = "--- FAIL: TestX (0.00s)
    a_test.go:4: got 1
    a_test.go:5: got 2
--- FAIL: TestP (0.00s)
    --- FAIL: TestP/sub (0.00s)
panic: runtime error: index out of range [3] with length 0 [recovered]
\tpanic: runtime error: index out of range [3] with length 0

goroutine 8 [running]:
testing.tRunner.func1.2({0x518a00, 0xc00001a060})
\t/usr/lib/go-1.19/src/testing/testing.go:1396 +0x24e
a.TestP.func1(0x0?)
\t/workspace/project/a_test.go:6 +0x1a
FAIL\ta\t0.010s
# b [b.test]
b/b.go:2:13: undefined: s
FAIL\tb [build failed]
";
    insta::assert_snapshot!(told(output), @"
    a_test.go:4 TestX: got 1
    a_test.go:5: got 2
    a_test.go:6 TestP/sub: runtime error: index out of range [3] with length 0
    b/b.go:2: undefined: s
    ");
}

#[test]
fn java() {
    let output = r"[INFO] Running com.x.FooTest
[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.05 s <<< FAILURE! -- in com.x.FooTest
[ERROR] com.x.FooTest.adds -- Time elapsed: 0.01 s <<< FAILURE!
org.opentest4j.AssertionFailedError: expected: <3> but was: <-1>
[ERROR] Failures:
[ERROR]   FooTest.adds:12 expected: <3> but was: <-1>
[ERROR]   BarTest.opens:7->open:20 » NullPointer
[ERROR] /workspace/project/src/main/java/com/x/Foo.java:[12,5] cannot find symbol
src/Foo.java:3: error: ';' expected
FooTest > adds() FAILED
    org.opentest4j.AssertionFailedError at FooTest.java:12
";
    insta::assert_snapshot!(told(output), @"
    FooTest:12 FooTest.adds: expected: <3> but was: <-1>
    BarTest:7 BarTest.opens: » NullPointer
    src/main/java/com/x/Foo.java:12: cannot find symbol
    src/Foo.java:3: ';' expected
    FooTest.java:12 FooTest > adds(): org.opentest4j.AssertionFailedError
    ");
}

#[test]
fn compilers_and_linters() {
    let output = r"e.c: In function ‘main’:
e.c:1:20: error: ‘x’ undeclared (first use in this function)
e.c:1:20: note: each undeclared identifier is reported only once
e.c:2:1: warning: unused
src/a.ts(12,5): error TS2304: Cannot find name 'x'.
src/b.ts:3:1 - error TS1005: ';' expected.
./src/c.py:3:1: F401 'os' imported but unused
/usr/include/stdio.h:3:1: error: foreign
see https://example.com:80: no
";
    insta::assert_snapshot!(told(output), @"
    e.c:1: ‘x’ undeclared (first use in this function)
    src/a.ts:12: TS2304: Cannot find name 'x'.
    src/b.ts:3: TS1005: ';' expected.
    src/c.py:3: F401 'os' imported but unused
    ");
}

#[test]
fn an_output_without_failures_has_none() {
    for output in ["", "no greeting", "ok\nError\n", "1) one\n2) two\n  1) indented\n"] {
        assert_eq!(read(output, "/workspace/project"), [], "{output:?}");
    }
}

/// Lines with a meaning, in any order.
const PIECES: [&str; 12] = [
    "thread 'a' panicked at src/lib.rs:5:17:",
    "error[E0308]: mismatched types",
    "  --> src/lib.rs:11:17",
    "FAILED tests/test_a.py::A::b - no",
    "_____ A.b _____",
    "E   assert 1",
    "Traceback (most recent call last):",
    "  File \"/workspace/project/a.py\", line 99999999999, in x",
    "not ok 1 - a",
    "  1) a",
    "a.c:1:1: error: b",
    "\u{1b}[1mTypeError: あ\u{1b}[0m",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_output_is_read_and_little_is_kept(parts in proptest::collection::vec((0..PIECES.len(), r"[^\n]{0,40}", 0_usize..2), 0..120)) {
        let lines = parts.iter().map(|(piece, noise, more)| [PIECES[*piece], &noise.repeat(*more)].concat());
        let output = lines.collect::<Vec<_>>().join("\n");
        let failures = read(&output, "/workspace/project");
        prop_assert!(failures.len() <= MOST_FAILURES);
        for failure in failures {
            prop_assert!(failure.to_string().len() <= 3 * LONGEST_TEXT + 20, "{failure}");
            prop_assert!(failure.place.is_some() || !failure.message.is_empty());
        }
    }

    #[test]
    fn any_text_is_no_trouble(output in any::<String>()) {
        let _ = read(&output, "");
    }
}

/// Twice the output takes about twice the time, whatever is in it.
#[test]
fn a_million_bytes_are_read_at_once() {
    let lines = PIECES
        .iter()
        .flat_map(|piece| [piece, "x:".repeat(20).as_str()].map(str::to_owned));
    let block: String = lines.map(|line| line + "\n").collect();
    let output = block.repeat(1_000_000 / block.len());
    let begun = std::time::Instant::now();
    assert_eq!(read(&output, "/workspace/project").len(), MOST_FAILURES);
    let long = format!("{} {}", "a.c:1:1: ".repeat(100_000), "'".repeat(1_000));
    read(&long, "/workspace/project");
    assert!(
        begun.elapsed() < std::time::Duration::from_secs(30),
        "{:?}",
        begun.elapsed()
    );
}
