package fromeino_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the examples into the document")

const document = "../../docs/from-eino.md"

var (
	// region is a marked part of a source file; its marks may be indented.
	region = regexp.MustCompile(`(?ms)^(\t*)// doc:start (\w+)\n(.*?)\n\t*// doc:end$`)
	// block is a code block of the document that names its region.
	block = regexp.MustCompile("(?s)<!-- example (\\w+) -->\n```go\n(.*?)```\n")
)

// TestDocument_ShowsTheExamplesThatRunAsTests compares every Go block of docs/from-eino.md with its
// region in this directory.
func TestDocument_ShowsTheExamplesThatRunAsTests(t *testing.T) {
	regions := make(map[string]string)
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range region.FindAllStringSubmatch(string(source), -1) {
			indent, name, code := found[1], found[2], strings.TrimRight(found[3], "\n")
			if _, twice := regions[name]; twice {
				t.Errorf("two regions have the name %s", name)
			}
			regions[name] = strings.TrimPrefix(strings.ReplaceAll("\n"+code, "\n"+indent, "\n"), "\n") + "\n"
		}
	}
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	shown := make(map[string]bool)
	now := block.ReplaceAllStringFunc(string(text), func(found string) string {
		part := block.FindStringSubmatch(found)
		name, code := part[1], part[2]
		shown[name] = true
		if want := regions[name]; want == "" {
			t.Errorf("the document shows %s, which has no region", name)
		} else if code != want && !*update {
			t.Errorf("the example %s differs from its region; run the test with -update:\n%s", name, want)
		}
		return "<!-- example " + name + " -->\n```go\n" + regions[name] + "```\n"
	})
	for name := range regions {
		if !shown[name] {
			t.Errorf("the document does not show %s", name)
		}
	}
	if blocks := strings.Count(string(text), "```go\n"); blocks != len(shown) {
		t.Errorf("the document has %d blocks of Go code and %d examples", blocks, len(shown))
	}
	if *update {
		if err := os.WriteFile(document, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDocument_ShowsEveryExampleOfTheGuide keeps the calls of the guide's examples in the document.
func TestDocument_ShowsEveryExampleOfTheGuide(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{
		"adk.NewChatModelAgent", "utils.InferTool", "InvokableApprovableTool", "adk.NewRunner", "WithCheckPointID", "ApprovalResult", "Runner.ResumeWithParams",
		"adk.Interrupt", "adk.StatefulInterrupt", "adk.CompositeInterrupt", "InterruptContexts", "adk.ResumeInfo",
		"compose.CompositeInterrupt", "compose.AppendAddressSegment", "compose.ExtractInterruptInfo",
		"compose.Resume", "compose.ResumeWithData", "compose.BatchResumeWithData", "compose.GetInterruptState", "compose.GetResumeContext",
		"compose.NewInterruptAndRerunErr", "compose.WrapInterruptAndRerunIfNeeded", "compose.WithInterruptAfterNodes",
		"InterruptInfo.Data", "ResumeInfo.InterruptInfo", "Runner.Resume",
	} {
		if !strings.Contains(string(text), "`"+call+"`") {
			t.Errorf("the document does not name %s", call)
		}
	}
}
