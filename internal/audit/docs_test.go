package audit_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/audit/reconcile"
	"github.com/fermata-go/fermata/internal/testtier"
)

func docPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "audit.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks returns the code blocks of a language on the page.
func blocks(text, language string) (all []string) {
	for _, part := range strings.Split(text, "```"+language+"\n")[1:] {
		code, _, _ := strings.Cut(part, "```")
		all = append(all, code)
	}
	return all
}

func TestDocs_CodeBlocksRun(t *testing.T) {
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(source), "// docs:start\n\n")
	code, _, ok := strings.Cut(rest, "\n// docs:end")
	quoted := blocks(docPage(t), "go")
	if !ok || len(quoted) != 1 || quoted[0] != code {
		t.Errorf("docs/audit.md does not quote example_test.go:\n%s", code)
	}
}

func TestDocs_ListEveryKindFaultAndFinding(t *testing.T) {
	text := docPage(t)
	for _, body := range bodies() {
		if kind := sample(0, body).Kind(); !strings.Contains(text, "`"+string(kind)+"`") {
			t.Errorf("docs/audit.md does not name the kind %s", kind)
		}
	}
	if codes := constants(t, "reconcile/reconcile.go", "FindingCode"); len(codes) != len(reconcile.FindingCodes) {
		t.Errorf("FindingCodes has %d of %d", len(reconcile.FindingCodes), len(codes))
	}
	names := append(constants(t, "problem.go", "Fault"), constants(t, "reconcile/reconcile.go", "FindingCode")...)
	if len(names) < 25 {
		t.Fatalf("only %q were found in the source", names)
	}
	for _, name := range names {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("docs/audit.md does not explain %s", name)
		}
	}
}

// constants returns the values of the constants of a type in a file.
func constants(t *testing.T, file, typ string) (values []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); ok && name.Name == typ {
			if value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value); err == nil {
				values = append(values, value)
			}
		}
		return true
	})
	return values
}

// newAuditorDir returns what the auditor has: a directory with an export and a public key.
func newAuditorDir(t *testing.T) (dir string, export []byte) {
	t.Helper()
	var records []audit.Record
	for i, body := range bodies() {
		records = append(records, sample(i, body))
	}
	m, key := memoryLog(t, "acme", records...), audit.NewKey()
	c, err := audit.CreateCheckpoint(t.Context(), m, "acme", key)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := audit.Export(t.Context(), m, "acme", audit.Range{}, audit.JSONL, &file); err != nil {
		t.Fatal(err)
	}
	public, err := key.Verifier(c.Origin)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	write(t, filepath.Join(dir, "export.jsonl"), file.Bytes())
	write(t, filepath.Join(dir, "key.pub"), []byte(public+"\n"))
	write(t, filepath.Join(dir, "kept"), c.Note)
	return dir, file.Bytes()
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// The auditor's program runs with the two files, and with manipulated ones.
func TestDocs_AuditorProgramWorks(t *testing.T) {
	dir, good := newAuditorDir(t)
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := auditor(path("export.jsonl"), path("key.pub"), path("kept")); err != nil {
		t.Fatal(err)
	}
	for name, bad := range forgeries(good) {
		write(t, path("export.jsonl"), bad)
		problem(t, name, auditor(path("export.jsonl"), path("key.pub")))
	}
}

func forgeries(good []byte) map[string][]byte {
	lines := bytes.SplitAfter(good, []byte("\n"))
	last := len(lines) - 3 // the last record: only the checkpoint follows
	without := func(from, to int) []byte {
		return bytes.Join(append(append([][]byte{}, lines[:from]...), lines[to:]...), nil)
	}
	edit := func(i int) []byte {
		return bytes.Join([][]byte{bytes.Join(lines[:i], nil), bytes.Replace(lines[i], []byte("alice"), []byte("mallo"), 1), bytes.Join(lines[i+1:], nil)}, nil)
	}
	return map[string][]byte{
		"a changed record":         edit(6),
		"the last record changed":  edit(last),
		"the first record changed": edit(0),
		"a deleted record":         without(6, 7),
		"the tail cut":             without(last, last+1),
		"the checkpoint removed":   without(last+1, last+2),
	}
}

// The same steps by hand, as the page shows them. Each step must detect its kind of manipulation.
func TestDocs_AuditorShellWorks(t *testing.T) {
	testtier.Needs(t, "jq and openssl")
	for _, tool := range []string{"bash", "openssl", "jq", "sha256sum", "base64", "paste"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("the manual steps need it (make test installs it): %v", err)
		}
	}
	script := strings.Join(blocks(docPage(t), "sh"), "\n")
	dir, good := newAuditorDir(t)
	run := func() (string, error) {
		cmd := exec.CommandContext(t.Context(), "bash", "-e", "-u", "-o", "pipefail", "-c", script)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run()
	if err != nil || !strings.Contains(out, "Signature Verified Successfully") || !strings.Contains(out, "all 41 records are as they were signed") {
		t.Fatalf("%v:\n%s", err, out)
	}
	for name, bad := range forgeries(good) {
		write(t, filepath.Join(dir, "export.jsonl"), bad)
		if out, err := run(); err == nil {
			t.Errorf("%s, but the shell prints\n%s", name, out)
		}
	}
}
