package agentkit

import "time"

// This file has what package net/http has too: importing it would make each agent 2 MB larger.

// statusText has the texts of http.StatusText for what the APIs of models answer.
var statusText = map[int]string{
	400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found",
	405: "Method Not Allowed", 408: "Request Timeout", 409: "Conflict", 410: "Gone", 413: "Request Entity Too Large",
	422: "Unprocessable Entity", 424: "Failed Dependency", 429: "Too Many Requests", 500: "Internal Server Error",
	501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
}

// parseTime is http.ParseTime: servers must send the first form, and clients accept the others too (RFC 9110, 5.6.7).
func parseTime(text string) (t time.Time, err error) {
	for _, layout := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC} {
		if t, err = time.Parse(layout, text); err == nil {
			break
		}
	}
	return t, err
}
