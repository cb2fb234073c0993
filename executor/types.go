package executor

import (
	"github.com/fermata-go/fermata/executor/internal/admin"
	"github.com/fermata-go/fermata/executor/internal/decide"
	"github.com/fermata-go/fermata/executor/internal/docs"
	"github.com/fermata-go/fermata/executor/internal/govern"
	"github.com/fermata-go/fermata/executor/internal/periodic"
	"github.com/fermata-go/fermata/executor/internal/providers"
	"github.com/fermata-go/fermata/executor/internal/requests"
	"github.com/fermata-go/fermata/executor/internal/view"
	"github.com/fermata-go/fermata/executor/internal/worker"
)

// AuditConfig says whether the audit logs of all accounts are signed and checked in the background. Of several processes on one store, one at a time does it.
// The zero value does neither.
type AuditConfig = admin.AuditConfig

// Overview is what operators see of the whole store, whichever process asks.
type Overview = admin.Overview

// MaxCountedRequests is how many open questions are counted.
const MaxCountedRequests = admin.MaxCountedRequests

// RefusedError says why a decision was not taken. Nothing was changed by it.
type RefusedError = decide.RefusedError

// Forbidden is the result of a decision that this person may not make; RefusedError.Err says why.
const Forbidden = decide.Forbidden

// SettledRequest is a question that is settled: it was answered, or has expired, or was withdrawn.
type SettledRequest = view.SettledRequest

// HypotheticalAction is an action to try the rules on.
type HypotheticalAction = govern.HypotheticalAction

// Grant is a remembered approval, and how far it is used up.
type Grant = govern.Grant

// GrantRequest says how an approval is remembered. The rules by which people were asked may allow less, or nothing.
type GrantRequest = requests.GrantRequest

// ParseGraphID takes a graph id apart: "inproc:review" is the graph review of the provider inproc.
func ParseGraphID(id string) (provider, graph string, err error) { return providers.ParseGraphID(id) }

// JobResult is the result of the last time that a chore was done, by whichever process.
type JobResult = periodic.JobResult

// ActCreateGrant is what somebody does who wants a grant. It is no act of package desk.
const ActCreateGrant = requests.ActCreateGrant

// MaxReplay is how many rulings [Executor.Replay] looks at.
const MaxReplay = govern.MaxReplay

// ResumableCheck is a run that is not over, and whether this program could go on with it.
type ResumableCheck = admin.ResumableCheck

// PolicyText is a policy as it was written.
type PolicyText = govern.PolicyText

// StartRequest starts a run. The same start can be repeated at will, and counts once.
type StartRequest = worker.StartRequest

// DecideRequest records answers to open requests.
type DecideRequest = decide.DecideRequest

// Answer is what a person answers to one question.
type Answer = decide.Answer

// RunView is a run as its account may see it.
type RunView = view.RunView

// RequestView is a question as its account may see it.
type RequestView = docs.RequestView
