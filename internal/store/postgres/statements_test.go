package postgres

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// statements returns the texts of all statements in the source of this package, by the names of
// their constants, which end in SQL. So tests cover all of them.
func statements(t *testing.T) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]ast.Expr{}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if decl, ok := decl.(*ast.GenDecl); ok && decl.Tok == token.CONST {
				for _, spec := range decl.Specs {
					for i, name := range spec.(*ast.ValueSpec).Names {
						constants[name.Name] = spec.(*ast.ValueSpec).Values[i]
					}
				}
			}
		}
	}
	texts := map[string]string{}
	for name, expr := range constants {
		if strings.HasSuffix(name, "SQL") {
			texts[name] = text(t, constants, expr)
		}
	}
	for i, column := range sealedColumns {
		texts[fmt.Sprintf("sealedColumns[%d].read", i)], texts[fmt.Sprintf("sealedColumns[%d].write", i)] = column.read, column.write
	}
	for _, schema := range []string{ // about the schema itself
		"schemaStateSQL", "historySQL", "noTimeoutSQL", "lockSQL", "shortTimeoutSQL", "createHistorySQL", "recordSQL",
	} {
		delete(texts, schema)
	}
	if len(texts) < 50 || texts["lockRunSQL"] != lockRunSQL || texts["endExecutionSQL"] != endExecutionSQL {
		t.Fatalf("%d statements were found, or with a wrong text", len(texts))
	}
	return texts
}

// text returns the value of a constant that is a literal or a concatenation.
func text(t *testing.T, constants map[string]ast.Expr, expr ast.Expr) string {
	t.Helper()
	switch expr := expr.(type) {
	case *ast.BasicLit:
		value, err := strconv.Unquote(expr.Value)
		if err != nil {
			t.Fatal(err)
		}
		return value
	case *ast.BinaryExpr:
		return text(t, constants, expr.X) + text(t, constants, expr.Y)
	case *ast.Ident:
		return text(t, constants, constants[expr.Name])
	}
	t.Fatalf("a statement with %T in it", expr)
	return ""
}

// I8: every statement that uses a table restricts it to one account. The exceptions are listed with
// a reason.
func TestI8_EveryStatementNamesTheAccount(t *testing.T) {
	ours := regexp.MustCompile(`\b(FROM|JOIN|INTO|UPDATE|ONLY) (` + strings.Join(tables, "|") + `)\b`)
	account := regexp.MustCompile(`\baccount = \$\d|\(account, `)
	all := map[string]string{ // those that cover all accounts
		"endDelaysSQL": "claim", "claimNextSQL": "claim", "unappliedSQL": "claim: of the claimed run", "dueInterruptsSQL": "expire", "finishedRunsSQL": "retention",
		"countSQL": "size", "advanceFeedSQL": "the numbers are the server's", "addNamedValueSQL": "belongs to no account", "namedValueSQL": "belongs to no account",
		"dueDocumentsSQL": "the clock", "pendingByKindSQL": "the metrics", "auditAccountsSQL": "reads all logs", "credentialSQL": "the account is unknown during authentication", "purgeCredentialsSQL": "retention",
	}
	for name, text := range statements(t) {
		_, listed := all[name]
		if strings.HasPrefix(name, "sealedColumns") {
			continue // re-encryption
		}
		if named := account.MatchString(text); ours.MatchString(text) && named == listed {
			t.Errorf("%s names the account: %t; is listed as one that need not: %t\n%s", name, named, listed, text)
		}
	}
}

// A run is locked by a separate statement before anything is checked that other transactions could
// change.
func TestStatements_UseTheLockedRun(t *testing.T) {
	var without []string
	for name, text := range statements(t) {
		writes := regexp.MustCompile(`\b(UPDATE|INTO|DELETE FROM) (runs|interrupts|resumes|effects|events)\b`).MatchString(text)
		if writes && !strings.Contains(text, "'fermata.run'") && !strings.HasPrefix(name, "sealedColumns") {
			without = append(without, name)
		}
	}
	// These read only the row that they change.
	want := []string{"createRunSQL", "endDelaysSQL", "renewSQL", "setProviderRefSQL"}
	if slices.Sort(without); !slices.Equal(without, want) {
		t.Errorf("without a lock of their own are %q, want %q", without, want)
	}
	for name, text := range statements(t) {
		if strings.HasPrefix(name, "lock") && (strings.Contains(text, "UPDATE runs") || !strings.Contains(text, "FOR ")) {
			t.Errorf("%s does more than lock\n%s", name, text)
		}
	}
}
