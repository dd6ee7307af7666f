import type { HttpAddress } from '../address.js'
import { type CheckResult, type Finding, runCheck } from '../diagnose.js'
import type { DoctorContext, OpenContext } from '../store-kind.js'
import { verifyToken } from './check-token.js'
import { findTokenRights } from './token-rights.js'

export function diagnoseService(address: HttpAddress, context: DoctorContext): Promise<Finding> {
  return runCheck(context.storeCheck, () => checkService(address, context))
}

async function checkService(address: HttpAddress, context: OpenContext): Promise<CheckResult> {
  const { name } = address
  const check = await verifyToken(address, context)
  if (check.state === 'accepted') {
    const grantedRights = await findTokenRights(address, context)
    const rightsClause =
      grantedRights.length > 0 ? `, which has the rights ${grantedRights.join(', ')}` : ''
    return { state: 'ok', message: `${name} answers, and accepts the token${rightsClause}` }
  }
  const { message, hint = 'Check the address. If it is right, tell the operator of the service' } =
    check.error
  const rejection = check.state === 'rejected' ? 'The token is not accepted: ' : ''
  return { state: 'failed', message: rejection + message, hint }
}
