package deploy

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// The shipped alert pages when a request has waited for two hours, and reads metrics that exist.
func TestSeed004_AlertPagesAfterTwoHours(t *testing.T) {
	text, err := os.ReadFile("prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	metrics, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			for _, name := range regexp.MustCompile(`fermata_[a-z_]+`).FindAllString(rule.Expr, -1) {
				if !strings.Contains(string(metrics), "`"+name+"`") {
					t.Errorf("%s reads %s, which is not a metric of the server", rule.Alert, name)
				}
			}
			if _, err := os.Stat("../" + rule.Annotations["runbook"]); err != nil {
				t.Errorf("%s: %v", rule.Alert, err)
			}
			if rule.Labels["severity"] != "page" {
				continue
			}
			pages++
			limit := regexp.MustCompile(`^max by \(kind\) \(fermata_request_oldest_seconds\) > (\d+) \* (\d+)$`).FindStringSubmatch(rule.Expr)
			if limit == nil || rule.For != "" {
				t.Fatalf("%s: %q for %q", rule.Alert, rule.Expr, rule.For)
			}
			factor, _ := strconv.Atoi(limit[1])
			unit, _ := strconv.Atoi(limit[2])
			if after := time.Duration(factor*unit) * time.Second; after != 2*time.Hour {
				t.Errorf("%s fires after %s", rule.Alert, after)
			}
		}
	}
	if pages != 1 {
		t.Errorf("%d rules page", pages)
	}
}
