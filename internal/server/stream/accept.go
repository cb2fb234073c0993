package stream

import (
	"strconv"
	"strings"
)

// Accepted reports whether a client accepts server-sent events. A quality of 0 means that it
// does not.
func Accepted(accept string) bool {
	for kind := range strings.SplitSeq(accept, ",") {
		kind, parameters, _ := strings.Cut(kind, ";")
		if strings.EqualFold(strings.TrimSpace(kind), MediaType) && !hasZeroQuality(parameters) {
			return true
		}
	}
	return false
}

// hasZeroQuality reports whether the parameters of a media type exclude it: q=0, q=0.000.
func hasZeroQuality(parameters string) bool {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(parameter, "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			weight, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return err == nil && weight == 0
		}
	}
	return false
}
