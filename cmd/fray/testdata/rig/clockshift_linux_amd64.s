#include "textflag.h"

GLOBL clockShift<>(SB), NOPTR, $8
GLOBL clockBefore<>(SB), NOPTR, $8

// func shiftVDSO(seconds int64)
TEXT ·shiftVDSO(SB), NOSPLIT, $0-8
	MOVQ seconds+0(FP), AX
	MOVQ AX, clockShift<>(SB)
	MOVQ runtime·vdsoClockgettimeSym(SB), AX
	MOVQ AX, clockBefore<>(SB)
	LEAQ shifted<>(SB), AX
	MOVQ AX, runtime·vdsoClockgettimeSym(SB)
	RET

// shifted is clock_gettime(DI clock, SI *timespec) as C calls it. It calls the
// kernel's and adds to the seconds of CLOCK_REALTIME, which is 0.
TEXT shifted<>(SB), NOSPLIT, $16-0
	MOVQ DI, 0(SP)
	MOVQ SI, 8(SP)
	MOVQ clockBefore<>(SB), AX
	CALL AX
	MOVQ 0(SP), DI
	MOVQ 8(SP), SI
	TESTL DI, DI
	JNE  done
	MOVQ clockShift<>(SB), CX
	ADDQ CX, 0(SI)
done:
	RET
