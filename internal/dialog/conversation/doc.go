// Package conversation implements the conversations of package dialog: the state machine, its
// wording, and the handler that stores them.
//
// [Machine] is a state machine without I/O: it takes a [Conversation] and a [Message], and returns
// what to say ([Prompt]) and what to store and deliver ([Effect]). [Handler] stores conversations
// as documents and delivers answers to runs through the port [Runs]. Package internal/dialog/runs
// implements the port with an executor.
package conversation
