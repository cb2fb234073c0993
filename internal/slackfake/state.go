package slackfake

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// inputBlock is an input of a modal.
type inputBlock struct {
	Type     string   `json:"type"`
	BlockID  string   `json:"block_id"`
	Optional bool     `json:"optional"`
	Label    textPart `json:"label"`
	Hint     textPart `json:"hint"`
	Element  struct {
		Type      string   `json:"type"`
		ActionID  string   `json:"action_id"`
		Initial   string   `json:"initial_value"`
		Multiline bool     `json:"multiline"`
		Max       int      `json:"max_length"`
		Decimal   bool     `json:"is_decimal_allowed"`
		Options   []option `json:"options"`
		Selected  *option  `json:"initial_option"`
		Checked   []option `json:"initial_options"`
	} `json:"element"`
}

type textPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type option struct {
	Text        textPart  `json:"text"`
	Value       string    `json:"value"`
	Description *textPart `json:"description,omitempty"`
	URL         string    `json:"url,omitempty"`
}

// inputs returns the input blocks of a modal.
func inputs(blocks json.RawMessage) (all []inputBlock) {
	var list []inputBlock
	_ = json.Unmarshal(blocks, &list)
	for _, b := range list {
		if b.Type == "input" {
			all = append(all, b)
		}
	}
	return all
}

func hasInput(blocks json.RawMessage, id string) bool {
	for _, b := range inputs(blocks) {
		if b.BlockID == id {
			return true
		}
	}
	return false
}

// viewState returns the state of a submission: the values by block id, otherwise the initial ones.
// Checkboxes have the chosen values, separated by commas. It checks inputs as Slack's client does.
func viewState(blocks json.RawMessage, values map[string]string) (state map[string]any, errs map[string]string) {
	state, errs = make(map[string]any), make(map[string]string)
	for _, b := range inputs(blocks) {
		value, given := values[b.BlockID]
		entry := map[string]any{"type": b.Element.Type}
		empty := false
		switch b.Element.Type {
		case "plain_text_input", "number_input":
			if !given {
				value = b.Element.Initial
			}
			empty = value == ""
			entry["value"] = value
			if empty {
				entry["value"] = nil
			} else if problem := checkTyped(b, value); problem != "" {
				errs[b.BlockID] = problem
			}
		case "static_select", "radio_buttons":
			chosen := b.Element.Selected
			if given {
				chosen = pick(b.Element.Options, value)
			}
			empty = chosen == nil
			entry["selected_option"] = chosen
		case "checkboxes":
			chosen := b.Element.Checked
			if given {
				chosen = []option{}
				for part := range strings.SplitSeq(value, ",") {
					if o := pick(b.Element.Options, part); o != nil {
						chosen = append(chosen, *o)
					}
				}
			}
			if chosen == nil {
				chosen = []option{}
			}
			empty = len(chosen) == 0
			entry["selected_options"] = chosen
		}
		if empty && !b.Optional {
			errs[b.BlockID] = "Please complete this required field."
		}
		state[b.BlockID] = map[string]any{b.Element.ActionID: entry}
	}
	return state, errs
}

// checkTyped returns what Slack's client says about a typed value.
func checkTyped(b inputBlock, value string) string {
	if b.Element.Max > 0 && utf8.RuneCountInString(value) > b.Element.Max {
		return "The text is too long."
	}
	if b.Element.Type != "number_input" {
		return ""
	}
	_, err := strconv.ParseFloat(value, 64)
	if err != nil || !b.Element.Decimal && strings.ContainsAny(value, ".eE") {
		return "Please enter a valid number."
	}
	return ""
}

func pick(options []option, value string) *option {
	for _, o := range options {
		if o.Value == value {
			return &o
		}
	}
	return nil
}
