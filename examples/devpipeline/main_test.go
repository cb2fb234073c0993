package main

import (
	"bufio"
	"errors"
	"regexp"
	"strings"
	"testing"
)

// clock matches the times in a report, which differ from run to run.
var clock = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`)

func TestAuto_EachGateRejectsOnceAndTheFeedbackIsUsed(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), "a todo list", &script{out: &out, seen: map[string]bool{}}, &out); err != nil {
		t.Fatal(err)
	}
	want := `
⏸ design_approval: Review PRD, TAS, and other design documents
  │ Design of a todo list
  │ - what it is for, and for whom
  │ - its parts, and how they talk
  ✗ rejected: name the risks

⏸ design_approval: Review PRD, TAS, and other design documents
  │ Design of a todo list
  │ - what it is for, and for whom
  │ - its parts, and how they talk
  │ - changed after review: name the risks
  ✓ approved

⏸ dag_approval: Review task DAG (phases, atomic tasks, DAG edges)
  │ 1 data model
  │ 2 storage (after 1)
  │ 3 commands (after 1 and 2)
  ✗ rejected: tests

⏸ dag_approval: Review task DAG (phases, atomic tasks, DAG edges)
  │ 1 data model
  │ 2 storage (after 1)
  │ 3 commands (after 1 and 2)
  │ 4 tests (after 3)
  ✓ approved

built: 1 data model
built: 2 storage (after 1)
built: 3 commands (after 1 and 2)
built: 4 tests (after 3)

Who decided what:
  TIME  design_approval rejected by the script: name the risks
  TIME  design_approval approved by the script
  TIME  dag_approval    rejected by the script: tests
  TIME  dag_approval    approved by the script
`
	if got := clock.ReplaceAllString(out.String(), "TIME"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestPerson_InvalidInputIsAskedAgain(t *testing.T) {
	var out strings.Builder
	in := bufio.NewScanner(strings.NewReader("maybe\nno\nname the costs\nyes\ny\n"))
	if err := run(t.Context(), "a todo list", &person{name: "alice", in: in, out: &out}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Approve? (y/n) > Approve? (y/n) > What should be improved? > ",
		"changed after review: name the costs",
		"design_approval rejected by alice: name the costs",
		"dag_approval    approved by alice",
		"built: 3 commands",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, out.String())
		}
	}
}

func TestPerson_WhoLeavesBuildsNothing(t *testing.T) {
	var out strings.Builder
	in := bufio.NewScanner(strings.NewReader("y\n"))
	err := run(t.Context(), "a todo list", &person{name: "alice", in: in, out: &out}, &out)
	if !errors.Is(err, errNoInput) || strings.Contains(out.String(), "built") {
		t.Errorf("got %v and\n%s", err, out.String())
	}
}
