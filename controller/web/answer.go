package web

import (
	"encoding/json"
	"net/http"
)

// problem is what is answered instead of what was asked for.
type problem struct {
	Error string `json:"error"`
}

func fail(w http.ResponseWriter, status int, why string) { answer(w, status, problem{Error: why}) }

func answer(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be encoded"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n'))
}
