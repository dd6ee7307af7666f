import type { HttpAddress } from '../address.js'
import { type CheckResult, type Finding, runCheck } from '../diagnose.js'
import type { DoctorContext, OpenContext } from '../store-kind.js'
import { verifyToken } from './check-token.js'

export function diagnoseService(address: HttpAddress, context: DoctorContext): Promise<Finding> {
  return runCheck(context.storeCheck, () => checkService(address, context))
}

async function checkService(address: HttpAddress, context: OpenContext): Promise<CheckResult> {
  const { name } = address
  const check = await verifyToken(address, context)
  if (check.state === 'accepted')
    return { state: 'ok', message: `${name} answers, and accepts the token` }
  const {
    message,
    hint = 'Check that it is a Plant Store service. For details: plants doctor --verbose',
  } = check.error
  const rejection = check.state === 'rejected' ? `${name} does not accept the token: ` : ''
  return { state: 'failed', message: rejection + message, hint }
}
