package gate_test

import (
	"os"
	"strings"
	"testing"
)

// The package documentation says for each export of the seed what takes its place.
func TestDoc_MapsEachExportOfTheSeed(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "# Names in other systems")
	if !ok {
		t.Fatal("the section is missing")
	}
	for _, export := range []string{
		"approveDesignNode", "approveTaskDagNode", "routeAfterApproveDesign", "routeAfterApproveTaskDag",
		"HitlGate", "HitlApprovalSignal", "HitlDecisionRecord", "HitlInterruptValue", "DesignApprovalRoute", "DagApprovalRoute",
		"HITL_APPROVAL_REQUIRED",
	} {
		if !strings.Contains(table, export+" ") && !strings.Contains(table, export+",") {
			t.Errorf("the table does not contain %s", export)
		}
	}
}
