package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/audit/reconcile"
	"github.com/fermata-go/fermata/internal/config"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/store"
	"go.yaml.in/yaml/v3"
)

// Settings, problems, events and metrics named in the documents exist.
func TestDocs_NamesExist(t *testing.T) {
	metrics, err := os.ReadFile("../docs/metrics.md") // generated from the exported metrics
	if err != nil {
		t.Fatal(err)
	}
	known := []string{"whsec_", "on_timeout", "ignore_startup_parameters"} // a key of policies, and one of PgBouncer
	for _, c := range server.Codes {
		known = append(known, c.Code)
	}
	for _, kind := range []store.EventKind{store.EventEffectBegun, store.EventEffectEnded} {
		known = append(known, string(kind))
	}
	for _, code := range reconcile.FindingCodes {
		known = append(known, string(code))
	}
	for _, fault := range []audit.Fault{audit.FaultTruncated, audit.FaultBadCheckpoint, audit.FaultWrongHead, audit.FaultWrongHashes} {
		known = append(known, string(fault))
	}
	for _, match := range regexp.MustCompile("`(fermata_[a-z_]+)`").FindAllStringSubmatch(string(metrics), -1) {
		known = append(known, match[1])
	}
	setting := regexp.MustCompile(`^(listen|store|key|auth|runs|audit|limits|webhooks|metrics|log)\.[a-zA-Z.]+$`)
	name := regexp.MustCompile(`^[a-z]+(_[a-z]+)+$`)
	for _, page := range []string{"operations.md", "runbook-stuck-approval.md", "runbook-audit.md"} {
		text, err := os.ReadFile(filepath.Join("..", "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, match := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(string(text), -1) {
			word := strings.TrimSpace(match[1])
			switch {
			case setting.MatchString(word):
				found++
				if !slices.Contains(config.Keys(), word) {
					t.Errorf("%s: unknown setting %s", page, word)
				}
			case name.MatchString(word):
				found++
				if !slices.Contains(known, word) {
					t.Errorf("%s: unknown name %s", page, word)
				}
			}
		}
		if found < 5 {
			t.Errorf("%s names only %d things", page, found)
		}
	}
}

// Metrics that need attention have a Prometheus rule, because users copy the rules and expect them
// to be complete.
func TestDocs_MetricsToWatchHaveARule(t *testing.T) {
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, watch, _ := strings.Cut(string(text), "\n## Watch\n")
	watch, _, _ = strings.Cut(watch, "\n## ")
	table, rest, _ := strings.Cut(watch, "\n```yaml\n")
	block, _, _ := strings.Cut(rest, "\n```\n")
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Labels      struct{ Severity string }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(block), &rules); err != nil || len(rules.Groups) != 1 {
		t.Fatalf("%v: %s", err, block)
	}
	metric := regexp.MustCompile(`fermata_[a-z_]+`)
	ruled := make(map[string]bool)
	for _, rule := range rules.Groups[0].Rules {
		if rule.Labels.Severity != "page" && rule.Labels.Severity != "ticket" || rule.Alert == "" || strings.Count(rule.Expr, "(") != strings.Count(rule.Expr, ")") {
			t.Errorf("%+v", rule)
		}
		for _, name := range metric.FindAllString(rule.Expr, -1) {
			ruled[name] = true
		}
	}
	known, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(table) {
		if when, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | "); strings.HasPrefix(line, "| ") {
			for _, name := range metric.FindAllString(when, -1) {
				if !ruled[name] {
					t.Errorf("%s is documented as important, but has no rule", name)
				}
			}
		}
	}
	for name := range ruled {
		if !strings.Contains(string(known), "`"+name+"`") {
			t.Errorf("a rule uses %s, which is not exported", name)
		}
	}
	if len(ruled) < 12 {
		t.Errorf("only %d metrics are documented as important", len(ruled))
	}
}
