package across

import "github.com/fray-ml/fray/actorrpc/rpcerror"

// failure is a call that fails, and the error that the caller gets.
type failure struct {
	name  string
	order order
	want  problem
	// byServer has the message where that depends on the actor's language
	byServer map[language]string
	byCaller map[language]string
}

// failures are all that a caller can do wrong.
func failures() []failure {
	raised := map[language]string{golang: "no such lesson", python: "ValueError: no such lesson"}
	unsent := map[language]string{
		golang: "a chan int is carried by no codec; send what it is made of", python: "a set is carried by no codec; send a list",
	}
	return []failure{
		{"an actor that is not there", order{Actor: "subjct", Method: "add", Args: "[[1],{}]"},
			problem{Code: rpcerror.CodeUnknownActor, Actor: "subjct", Method: "add", Near: []string{"subject"}, Message: `no actor "subjct" is here`}, nil, nil},
		{"a method that is not there", order{Method: "ad", Args: "[[1],{}]"},
			problem{Code: rpcerror.CodeUnknownMethod, Method: "ad", Near: []string{"add"}, Message: `no method "ad"`}, nil, nil},
		{"one that is private", order{Method: "_add", Args: "[[1],{}]"},
			problem{Code: rpcerror.CodeUnknownMethod, Method: "_add", Message: `no method "_add"; underscore names are not callable`}, nil, nil},
		{"one of every object", order{Method: "__init__", Args: "[[],{}]"},
			problem{Code: rpcerror.CodeUnknownMethod, Method: "__init__", Message: `no method "__init__"; underscore names are not callable`}, nil, nil},
		{"too many arguments", order{Method: "add", Args: "[[1,2,3],{}]"},
			problem{Code: rpcerror.CodeBadArguments, Method: "add", Message: "takes 1 argument, got 3"}, nil, nil},
		{"too few arguments", order{Method: "add", Args: "[[],{}]"},
			problem{Code: rpcerror.CodeBadArguments, Method: "add", Message: "takes 1 argument, got 0"}, nil, nil},
		{"an unknown name", order{Method: "add", Args: `[[],{"byy":1}]`},
			problem{Code: rpcerror.CodeBadArguments, Method: "add", Argument: "kwargs.byy", Near: []string{"by"}, Message: `unexpected argument "byy"`}, nil, nil},
		{"an argument twice", order{Method: "add", Args: `[[1],{"by":1}]`},
			problem{Code: rpcerror.CodeBadArguments, Method: "add", Argument: "kwargs.by", Message: `unexpected argument "by"`}, nil, nil},
		{"an argument of another type", order{Method: "add", Args: `[["one"],{}]`},
			problem{Code: rpcerror.CodeBadArguments, Method: "add", Argument: "args[0]", Message: "want int, got string"}, nil, nil},
		{"one by name of another type", order{Method: "add", Args: `[[],{"by":[1]}]`},
			problem{Code: rpcerror.CodeBadArguments, Method: "add", Argument: "kwargs.by", Message: "want int, got list"}, nil, nil},
		{"a number for a text", order{Method: "mixed", Args: `[[7,{},[]],{}]`},
			problem{Code: rpcerror.CodeBadArguments, Method: "mixed", Argument: "args[0]", Message: "want string, got int"}, nil, nil},
		{"a text for a map", order{Method: "mixed", Args: `[["a","b",[]],{}]`},
			problem{Code: rpcerror.CodeBadArguments, Method: "mixed", Argument: "args[1]", Message: "want map, got string"}, nil, nil},
		{"bytes for a list", order{Method: "mixed", Args: `[["a",{},{"$bytes":"AP8="}],{}]`},
			problem{Code: rpcerror.CodeBadArguments, Method: "mixed", Argument: "args[2]", Message: "want list, got bytes"}, nil, nil},
		{"what the method raises", order{Method: "fail", Args: `[["no such lesson"],{}]`},
			problem{Code: rpcerror.CodeApplication, Method: "fail", Ran: true}, raised, nil},
		{"an argument that no codec carries", order{Method: "echo", Odd: true},
			problem{Code: rpcerror.CodeEncoding, Method: "echo", Argument: "args[0].lr"}, nil, unsent},
		{"a result that no codec carries", order{Method: "odd", Args: "[[],{}]"},
			problem{Code: rpcerror.CodeEncoding, Method: "odd", Argument: "result.deep[1]", Ran: true}, unsent, nil},
		{"arguments that are too large", order{Method: "echo", Size: 2 * maxMessage},
			problem{Code: rpcerror.CodeTooLarge, Method: "echo", Message: "the arguments are 2.1 MiB; at most 1 MiB are taken (max_message_bytes)"}, nil, nil},
		{"a result that is too large", order{Method: "big", Args: "[[2097152],{}]"},
			problem{Code: rpcerror.CodeTooLarge, Method: "big", Ran: true, Message: "the result is 2.1 MiB; at most 1 MiB are taken (max_message_bytes)"}, nil, nil},
		{"a deadline that passes", order{Method: "wait", Args: "[[],{}]", Timeout: 0.2},
			problem{Code: rpcerror.CodeDeadline, Method: "wait", Ran: true, Message: "the deadline passed"}, nil, nil},
		{"another namespace", order{Method: "add", Args: "[[1],{}]", Namespace: "elsewhere"},
			problem{Code: rpcerror.CodeDenied, Method: "add", Message: "peers of another namespace are not served"}, map[language]string{golang: `: the server is of namespace "across"`}, nil},
	}
}
