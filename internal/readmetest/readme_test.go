//go:build unix

package readmetest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// step is one command of a text, without its comment.
type step string

// steps returns the commands in the sh blocks of a text. A trailing backslash continues a line.
func steps(text string) []step {
	var all []step
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```").FindAllStringSubmatch(text, -1) {
		all = append(all, commands(block[1])...)
	}
	return all
}

func commands(block string) []step {
	var all []step
	for line := range strings.SplitSeq(strings.ReplaceAll(block, "\\\n", " "), "\n") {
		line = regexp.MustCompile(`(^|\s+)# .*`).ReplaceAllString(line, "")
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, step(line))
		}
	}
	return all
}

// handlers runs commands that cannot be run unchanged. The first match applies. Every other command
// runs in the copy of the tree and must succeed.
var handlers = []struct {
	command *regexp.Regexp
	do      func(t *testing.T, p *shell, s step)
	why     string
}{
	{regexp.MustCompile(`^go get `), getInOwnModule, "for a module of one's own; the version is the copy, not what is published"},
	{regexp.MustCompile(`^go install \S+@`), installFromTree, "the version is the copy, not what is published"},
	{regexp.MustCompile(`^make demo$`), runMakeDemo, "it serves until it is stopped"},
	{regexp.MustCompile(`^make demo-terminal$`), runTyped, "it asks in the terminal; without an answer the run waits"},
	{regexp.MustCompile(`^curl `), checkCall, "curl succeeds for any response"},
	{regexp.MustCompile(`^make `), checkMakeTarget, "make test is what runs this test"},
	{regexp.MustCompile(`fermata (demo|serve)( -.*)?$`), serveInBackground, "it serves until it is stopped"},
	{regexp.MustCompile(`^(docker|kubectl|npm) `), skipCommand, "needs a program that may be missing"},
	{regexp.MustCompile(`^export .*…`), skipCommand, "the values are those that the demo printed"},
}

func getInOwnModule(t *testing.T, p *shell, s step) {
	p.run(t, p.own, "go mod init example.com/mine && go mod edit -replace github.com/fermata-go/fermata="+p.tree+" && cp "+p.tree+"/go.sum .")
	p.run(t, p.own, string(s))
}

func installFromTree(t *testing.T, p *shell, s step) {
	p.run(t, p.tree, regexp.MustCompile(`github\.com/fermata-go/fermata(\S*)@\S+`).ReplaceAllString(string(s), ".$1"))
}

func serveInBackground(t *testing.T, p *shell, s step) { p.serve(t, string(s)) }

// runMakeDemo runs make demo, which takes flags in its own way.
func runMakeDemo(t *testing.T, p *shell, s step) { p.serve(t, string(s)+" DEMOFLAGS='$FLAGS'") }

// checkCall checks the response of a call: the server must accept what README.md proposes.
func checkCall(t *testing.T, p *shell, s step) {
	t.Helper()
	answer := decode[struct{ Status any }](t, p.run(t, p.tree, string(s)))
	if answer.Status != "needs_input" && answer.Status != "completed" {
		t.Errorf("$ %s\nreturned %v", s, answer.Status)
	}
}

func runTyped(t *testing.T, p *shell, s step) { p.run(t, p.tree, string(s)) }

func checkMakeTarget(t *testing.T, p *shell, s step) {
	p.run(t, p.tree, "make -n "+strings.TrimPrefix(string(s), "make "))
}

func skipCommand(t *testing.T, _ *shell, s step) { t.Log("not followed:", s) }

// proposals returns the commands that the demo prints, indented and followed by a description. The
// link for the browser is not a command.
func proposals(said string) []step {
	var lines []string
	for line := range strings.SplitSeq(strings.ReplaceAll(said, "\\\n", " "), "\n") {
		if text, ok := strings.CutPrefix(line, "  "); ok && !strings.HasPrefix(strings.TrimSpace(text), "http://") {
			text = regexp.MustCompile(`\s{6,}[a-z].*`).ReplaceAllString(text, "")
			lines = append(lines, text)
		}
	}
	return commands(strings.Join(lines, "\n"))
}

// follow runs the commands of a text.
func (p *shell) follow(t *testing.T, text string) {
	t.Helper()
	all := steps(text)
	if len(all) < 5 {
		t.Fatalf("there are only %d commands in it", len(all))
	}
	p.followEach(t, all)
}

func (p *shell) followEach(t *testing.T, all []step) {
	t.Helper()
	for _, s := range all {
		do := runTyped
		for _, way := range handlers {
			if way.command.MatchString(string(s)) {
				do = way.do
				break
			}
		}
		if !strings.HasPrefix(string(s), "export ") { // it contains a key
			t.Log("$", s)
		}
		do(t, p, s)
	}
}

// links returns the paths in the repository that a text links to.
func links(text string) []string {
	text = regexp.MustCompile("(?ms)^```.*?^```").ReplaceAllString(text, "") // code is not a link
	var all []string
	for _, match := range regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`).FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	return all
}

func checkLinks(t *testing.T, tree, file string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tree, file))
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links(string(text)) {
		if _, err := os.Stat(filepath.Join(tree, filepath.Dir(file), link)); err != nil {
			t.Errorf("%s links to %s, which does not exist", file, link)
		}
	}
}

func TestSteps_ParseLikeAShell(t *testing.T) {
	got := steps("text\n```sh\nmake demo    # try it\n\n# alone\ncurl -s $X \\\n  -d '{\"a\":1}'\n```\n```go\nno()\n```\n```sh\ngo run . # b\n```\n")
	want := []step{"make demo", "curl -s $X    -d '{\"a\":1}'", "go run ."}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%q, not %q", got[i], want[i])
		}
	}
}
