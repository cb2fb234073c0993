package arch

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const requirementsPage = "docs/requirements.md"

// pendingIssues are the issues that a requirement without a test may name.
var pendingIssues = []string{"attestation", "engine", "web inbox", "channels", "providers", "dialog"}

func TestRequirements_NameExistingTests(t *testing.T) {
	root := repository(t)
	text, err := fs.ReadFile(root, requirementsPage)
	if err != nil {
		t.Fatal(err)
	}
	sections, problems := parseRequirements(string(text))
	if len(sections) != 5 {
		t.Errorf("%s has %d sections with a table, want one per source document: 5", requirementsPage, len(sections))
	}
	problems = append(problems, checkRequirements(root, sections)...)
	for _, problem := range problems {
		t.Errorf("%s:%s", requirementsPage, problem)
	}
	for _, s := range sections {
		var shown, different int
		for _, row := range s.rows {
			if row.pending == "" {
				shown++
				if strings.HasPrefix(row.how, "differently") {
					different++
				}
			}
		}
		t.Logf("%s: %d requirements, %d shown by a test (%d differently), %d not yet", s.title, len(s.rows), shown, different, len(s.rows)-shown)
	}
}

func TestCheckRequirements_FindsViolations(t *testing.T) {
	root := fstest.MapFS{
		"root_test.go":      {Data: []byte("package fermata\nfunc TestRoot(t *testing.T) {}\n")},
		"a/b/x_test.go":     {Data: []byte("package b\nfunc TestX(t *testing.T) {}\nfunc ExampleX() {}\nfunc (s suite) TestMethod() {}\n// func TestComment(t *testing.T) {}\n")},
		"a/b/x.go":          {Data: []byte("package b\nfunc TestCode(t *testing.T) {}\n")},
		"broken/x_test.go":  {Data: []byte("package")},
		"untested/other.go": {Data: []byte("package untested\n")},
	}
	const header = "## One\n\n| requirement | in Fermata | shown by |\n|---|---|---|\n"
	for name, test := range map[string]struct{ text, want string }{
		"a test":                      {header + "| r | h | `a/b.TestX` |\n", ""},
		"a test of the root package":  {header + "| r | h | `fermata.TestRoot` |\n", ""},
		"two tests, one an example":   {header + "| r | h | `a/b.TestX`, `a/b.ExampleX` |\n", ""},
		"not yet":                     {header + "| r | h | not yet (issue: web inbox) |\n", ""},
		"same name in other sections": {header + "| r | h | `a/b.TestX` |\n" + strings.Replace(header, "One", "Two", 1) + "| r | h | `a/b.TestX` |\n", ""},
		"a renamed test":              {header + "| r | h | `a/b.TestY` |\n", "5: there is no a/b.TestY"},
		"a test that is a method":     {header + "| r | h | `a/b.TestMethod` |\n", "no a/b.TestMethod"},
		"a test in a comment":         {header + "| r | h | `a/b.TestComment` |\n", "no a/b.TestComment"},
		"a function of the code":      {header + "| r | h | `a/b.TestCode` |\n", "no a/b.TestCode"},
		"an unknown package":          {header + "| r | h | `a/c.TestX` |\n", "no a/c.TestX"},
		"a package without tests":     {header + "| r | h | `untested.TestX` |\n", "no untested.TestX"},
		"a file that does not parse":  {header + "| r | h | `broken.TestX` |\n", "broken/x_test.go"},
		"a subtest":                   {header + "| r | h | `a/b.TestX/sub` |\n", "want `package.TestName`"},
		"a test without backquotes":   {header + "| r | h | a/b.TestX |\n", "want `package.TestName`"},
		"neither test nor not yet":    {header + "| r | h | |\n", "empty cell"},
		"no requirement":              {header + "| | h | `a/b.TestX` |\n", "empty cell"},
		"an unknown issue":            {header + "| r | h | not yet (issue: someday) |\n", `unknown issue "someday"`},
		"not yet without an issue":    {header + "| r | h | not yet |\n", "want `package.TestName`"},
		"a cell too many":             {header + "| r | h | `a/b.TestX` | more |\n", "4 cells, want 3"},
		"the same row twice":          {header + "| r | h | `a/b.TestX` |\n| R | other | `a/b.TestX` |\n", "6: repeats line 5"},
		"a row outside of a table":    {"| r | h | `a/b.TestX` |\n", "1: a row before the first section"},
		"another header":              {"## One\n\n| what | how | test |\n|---|---|---|\n", "3: want the header"},
	} {
		t.Run(name, func(t *testing.T) {
			sections, problems := parseRequirements(test.text)
			problems = append(problems, checkRequirements(root, sections)...)
			if test.want == "" {
				if len(problems) != 0 {
					t.Errorf("unexpected problems: %q", problems)
				}
				return
			}
			if len(problems) != 1 || !strings.Contains(problems[0], test.want) {
				t.Errorf("problems = %q, want one with %q", problems, test.want)
			}
		})
	}
}

type requirementSection struct {
	title string
	rows  []requirement
}

type requirement struct {
	line      int
	text, how string
	tests     []string // package directory, a dot, and the name of the function
	pending   string   // the issue of a requirement that has no test yet
}

const requirementsHeader = "| requirement | in Fermata | shown by |"

var (
	shownBy    = regexp.MustCompile("^`[\\w/]+\\.(?:Test|Example)\\w*`(?:, `[\\w/]+\\.(?:Test|Example)\\w*`)*$")
	notYet     = regexp.MustCompile(`^not yet \(issue: ([^)]+)\)$`)
	tableRuler = regexp.MustCompile(`^\|(?:-+\|)+$`)
)

// parseRequirements reads the tables below the second-level headings of the page. Problems begin
// with the line number.
func parseRequirements(text string) (sections []requirementSection, problems []string) {
	var title string
	inTable := false
	for i, line := range strings.Split(text, "\n") {
		number := i + 1
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			title = heading
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case title == "":
			problems = append(problems, fmt.Sprintf("%d: a row before the first section", number))
		case !inTable:
			inTable = true
			sections = append(sections, requirementSection{title: title})
			if line != requirementsHeader {
				problems = append(problems, fmt.Sprintf("%d: want the header %s", number, requirementsHeader))
			}
		case tableRuler.MatchString(line):
		default:
			row, err := parseRequirement(line)
			if err != nil {
				problems = append(problems, fmt.Sprintf("%d: %v", number, err))
				continue
			}
			row.line = number
			section := &sections[len(sections)-1]
			if at := slices.IndexFunc(section.rows, func(r requirement) bool { return strings.EqualFold(r.text, row.text) }); at >= 0 {
				problems = append(problems, fmt.Sprintf("%d: repeats line %d", number, section.rows[at].line))
				continue
			}
			section.rows = append(section.rows, row)
		}
	}
	return sections, problems
}

func parseRequirement(line string) (requirement, error) {
	cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|")
	if len(cells) != 3 {
		return requirement{}, fmt.Errorf("%d cells, want 3", len(cells))
	}
	for i, cell := range cells {
		if cells[i] = strings.TrimSpace(cell); cells[i] == "" {
			return requirement{}, errors.New("empty cell")
		}
	}
	row := requirement{text: cells[0], how: cells[1]}
	if pending := notYet.FindStringSubmatch(cells[2]); pending != nil {
		if row.pending = pending[1]; !slices.Contains(pendingIssues, row.pending) {
			return row, fmt.Errorf("unknown issue %q", row.pending)
		}
		return row, nil
	}
	if !shownBy.MatchString(cells[2]) {
		return row, fmt.Errorf("shown by %q: want `package.TestName`, or not yet with its issue", cells[2])
	}
	for _, test := range strings.Split(cells[2], ", ") {
		row.tests = append(row.tests, strings.Trim(test, "`"))
	}
	return row, nil
}

// checkRequirements reports each named test that its package directory does not have.
func checkRequirements(root fs.FS, sections []requirementSection) (problems []string) {
	packages := make(map[string]map[string]bool)
	for _, section := range sections {
		for _, row := range section.rows {
			for _, test := range row.tests {
				dir, name, _ := strings.Cut(test, ".")
				if dir == "fermata" {
					dir = "."
				}
				if packages[dir] == nil {
					var err error
					if packages[dir], err = testFunctions(root, dir); err != nil {
						problems = append(problems, fmt.Sprintf("%d: %v", row.line, err))
						continue
					}
				}
				if !packages[dir][name] {
					problems = append(problems, fmt.Sprintf("%d: there is no %s", row.line, test))
				}
			}
		}
	}
	return problems
}

// testFunctions returns the functions in the test files of a directory.
func testFunctions(root fs.FS, dir string) (map[string]bool, error) {
	names, err := fs.Glob(root, path.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	functions := make(map[string]bool)
	for _, name := range names {
		source, err := fs.ReadFile(root, name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv == nil {
				functions[function.Name.Name] = true
			}
		}
	}
	return functions, nil
}
