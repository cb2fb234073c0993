package policy

import (
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/timespan"
)

// Requirement defines who must approve, until when, and under which conditions. It has Groups of
// people, the duties that Exclude a person, Deadline, OnTimeout and OnEscalate, Routes, MinAuth,
// Editable, EditReasons, RejectReasons, Confirm, VisibleTo, Sensitive, RememberMax, Undo, DenyCount
// and Verbs. Each has the meaning and the values of the key in the rule file that docs/policy.md
// describes. Several rules that ask are merged into one requirement that is at least as strict as
// each.
type Requirement = requirement.Requirement

// Group requires Count people of those in From. Widen lists who may be added by a step of the
// route. A group of a higher Stage decides after all groups of lower stages are satisfied.
type Group = requirement.Group

// Duration is a duration in YAML and JSON: 90m, 24h, 30d.
type Duration = timespan.Duration
