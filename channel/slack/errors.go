package slack

import (
	"errors"
	"regexp"
	"slices"

	"github.com/slack-go/slack"

	"github.com/fermata-go/fermata/channel"
)

// permanentCodes are errors of Slack that another attempt does not solve. An operator must act.
var permanentCodes = []string{
	"account_inactive", "cannot_dm_bot", "cant_update_message", "channel_not_found", "invalid_auth", "invalid_blocks", "invalid_arguments",
	"is_archived", "metadata_too_large", "missing_scope", "msg_too_long", "no_permission", "no_such_subteam", "no_text", "not_allowed_token_type",
	"not_authed", "not_in_channel", "org_login_required", "restricted_action", "team_access_not_granted", "token_expired", "token_revoked",
	"user_disabled", "user_not_found",
}

var validCode = regexp.MustCompile(`^[a-z0-9_]{1,50}$`)

// sendError classifies an error of the Web API.
func sendError(err error) error {
	if _, ok := errors.AsType[*channel.Error](err); ok {
		return err
	}
	if limited, ok := errors.AsType[*slack.RateLimitedError](err); ok {
		return &channel.Error{Code: "ratelimited", RetryAfter: limited.RetryAfter, Err: err}
	}
	if refused, ok := errors.AsType[slack.SlackErrorResponse](err); ok && validCode.MatchString(refused.Err) {
		return &channel.Error{Code: refused.Err, Permanent: slices.Contains(permanentCodes, refused.Err), Err: err}
	}
	if timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && timeout.Timeout() {
		return &channel.Error{Code: "timeout", Err: err}
	}
	return &channel.Error{Code: "unreachable", Err: err}
}

// isCode reports whether an error has a code of Slack.
func isCode(err error, code string) bool {
	e, ok := errors.AsType[*channel.Error](err)
	return ok && e.Code == code
}
