package conversation

import "github.com/fermata-go/fermata/dialog"

// The public vocabulary.
type (
	StoredFact   = dialog.StoredFact
	Model        = dialog.Model
	Judgement    = dialog.Judgement
	Line         = dialog.Line
	RunLink      = dialog.RunLink
	Record       = dialog.Record
	Choice       = dialog.Choice
	Prompt       = dialog.Prompt
	Report       = dialog.Report
	Row          = dialog.Row
	Start        = dialog.Start
	Assistant    = dialog.Assistant
	Kind         = dialog.Kind
	Relevance    = dialog.Relevance
	Modality     = dialog.Modality
	Risk         = dialog.Risk
	Language     = dialog.Language
	Status       = dialog.Status
	Option       = dialog.Option
	Field        = dialog.Field
	Fact         = dialog.Fact
	Scope        = dialog.Scope
	Remember     = dialog.Remember
	Question     = dialog.Question
	Method       = dialog.Method
	Answer       = dialog.Answer
	Verdict      = dialog.Verdict
	Turn         = dialog.Turn
	Target       = dialog.Target
	Asking       = dialog.Asking
	Entity       = dialog.Entity
	Message      = dialog.Message
	Reply        = dialog.Reply
	Conversation = dialog.Conversation
	Which        = dialog.Which
	Remembered   = dialog.Remembered
)

const (
	Drop              = dialog.Drop
	ByUser            = dialog.ByUser
	ByAgent           = dialog.ByAgent
	ByHandler         = dialog.ByHandler
	Clarification     = dialog.Clarification
	Confirmation      = dialog.Confirmation
	Disambiguation    = dialog.Disambiguation
	Form              = dialog.Form
	Blocking          = dialog.Blocking
	NonBlocking       = dialog.NonBlocking
	Text              = dialog.Text
	Voice             = dialog.Voice
	RiskLow           = dialog.RiskLow
	RiskHigh          = dialog.RiskHigh
	RiskCritical      = dialog.RiskCritical
	English           = dialog.English
	German            = dialog.German
	French            = dialog.French
	Spanish           = dialog.Spanish
	Queued            = dialog.Queued
	Asked             = dialog.Asked
	Confirming        = dialog.Confirming
	Collecting        = dialog.Collecting
	Comparing         = dialog.Comparing
	Drafted           = dialog.Drafted
	HandedOver        = dialog.HandedOver
	Answered          = dialog.Answered
	Escaped           = dialog.Escaped
	Expired           = dialog.Expired
	Lapsed            = dialog.Lapsed
	Withdrawn         = dialog.Withdrawn
	ChoiceYes         = dialog.ChoiceYes
	ChoiceNo          = dialog.ChoiceNo
	ChoiceOther       = dialog.ChoiceOther
	ChoiceEscape      = dialog.ChoiceEscape
	TextField         = dialog.TextField
	NumberField       = dialog.NumberField
	DateField         = dialog.DateField
	ChoiceField       = dialog.ChoiceField
	ScopeUser         = dialog.ScopeUser
	ByButton          = dialog.ByButton
	ByPhrase          = dialog.ByPhrase
	ByOrdinal         = dialog.ByOrdinal
	ByName            = dialog.ByName
	BySemantics       = dialog.BySemantics
	ByReadBack        = dialog.ByReadBack
	ByText            = dialog.ByText
	ByForm            = dialog.ByForm
	ByCreation        = dialog.ByCreation
	ByMemory          = dialog.ByMemory
	ByPerson          = dialog.ByPerson
	ByDeadline        = dialog.ByDeadline
	ByDefault         = dialog.ByDefault
	ByCorrection      = dialog.ByCorrection
	IsAnswer          = dialog.IsAnswer
	IsEscape          = dialog.IsEscape
	IsNewIntent       = dialog.IsNewIntent
	IsCounterQuestion = dialog.IsCounterQuestion
	IsUnclear         = dialog.IsUnclear
)

var (
	ErrUnknownQuestion = dialog.ErrUnknownQuestion
	ErrClosed          = dialog.ErrClosed
	ErrInvalidQuestion = dialog.ErrInvalidQuestion
	ErrInvalidReply    = dialog.ErrInvalidReply
	ErrNotFound        = dialog.ErrNotFound
	ErrInvalidID       = dialog.ErrInvalidID
	ErrMessageReused   = dialog.ErrMessageReused
)
