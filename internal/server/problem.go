package server

import "github.com/fermata-go/fermata/internal/server/problems"

// Problem is the body of an error response.
type Problem = problems.Problem

// Codes lists the stable problem codes.
var Codes = problems.Codes
