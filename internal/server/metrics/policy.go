package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// PolicyStatus reports problems of the policy and groups files. The policy in force still applies.
type PolicyStatus struct {
	// Rejected reports that a file cannot be loaded; the previous version stays in force.
	Rejected bool
	// Unsatisfiable reports that rules in force require approvals that the groups cannot give.
	Unsatisfiable bool
}

var policyDesc = desc("fermata_policy_problem", "1 while the policy or groups files have this problem: rejected if a file cannot be loaded and the previous one stays in force; unsatisfiable if rules require approvals that no group can give.", "problem")

// Policy exports the policy status; nil means no problem.
type Policy func() PolicyStatus

// Describe implements prometheus.Collector.
func (Policy) Describe(to chan<- *prometheus.Desc) { to <- policyDesc }

// Collect implements prometheus.Collector.
func (status Policy) Collect(to chan<- prometheus.Metric) {
	var now PolicyStatus
	if status != nil {
		now = status()
	}
	for name, active := range map[string]bool{"rejected": now.Rejected, "unsatisfiable": now.Unsatisfiable} {
		value := 0.0
		if active {
			value = 1
		}
		to <- prometheus.MustNewConstMetric(policyDesc, prometheus.GaugeValue, value, name)
	}
}
