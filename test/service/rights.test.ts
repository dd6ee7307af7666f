import { expect, test } from 'vitest'
import { Sandbox } from '../helpers/sandbox/sandbox.js'
import { exchangeOnce } from '../helpers/scripted-server/raw-http.js'
import { type RunningService, serve } from '../helpers/scripted-server/service.js'

// What a token may do at a service: the rights of the token, and the operations that --allow offers.

const fern = '{"id":1,"name":"Fern"}'
const allRights = 'create,read,update,delete'

const operations = {
  create: { method: 'POST', target: '/plants', right: 'create' },
  list: { method: 'GET', target: '/plants', right: 'read' },
  count: { method: 'GET', target: '/plants/count', right: 'read' },
  get: { method: 'GET', target: '/plants/1', right: 'read' },
  update: { method: 'PATCH', target: '/plants/1', right: 'update' },
  delete: { method: 'DELETE', target: '/plants/1', right: 'delete' },
}
type Operation = keyof typeof operations

const everythingAllowed: Record<Operation, string> = {
  create: '200',
  list: '200',
  count: '200',
  get: '200',
  update: '200',
  delete: '200',
}
const onlyCreateOffered: Record<Operation, string> = {
  create: '200',
  list: '403, not offered',
  count: '403, not offered',
  get: '403, not offered',
  update: '403, not offered',
  delete: '403, not offered',
}
const onlyReadOffered: Record<Operation, string> = {
  create: '400 (403), not offered',
  list: '200',
  count: '200',
  get: '404',
  update: '403, not offered',
  delete: '403, not offered',
}
const onlyReadGranted: Record<Operation, string> = {
  create: '400 (403), token lacks the right',
  list: '200',
  count: '200',
  get: '404',
  update: '403, token lacks the right',
  delete: '403, token lacks the right',
}
const onlyCreateGranted: Record<Operation, string> = {
  create: '200',
  list: '403, token lacks the right',
  count: '403, token lacks the right',
  get: '403, token lacks the right',
  update: '403, token lacks the right',
  delete: '403, token lacks the right',
}

test.each([
  {
    service: 'without --allow',
    flags: [],
    token: 'all rights',
    rights: allRights,
    responses: everythingAllowed,
  },
  {
    service: 'with --allow create',
    flags: ['--allow', 'create'],
    token: 'all rights',
    rights: allRights,
    responses: onlyCreateOffered,
  },
  {
    service: 'with --allow read',
    flags: ['--allow', 'read'],
    token: 'all rights',
    rights: allRights,
    responses: onlyReadOffered,
  },
  {
    service: 'with --allow for all rights',
    flags: ['--allow', allRights],
    token: 'the right read',
    rights: 'read',
    responses: onlyReadGranted,
  },
  // A token of the environment has the rights of --allow, or else the right create.
  {
    service: 'without --allow',
    flags: [],
    token: 'the rights of the environment',
    rights: '',
    responses: onlyCreateGranted,
  },
  {
    service: 'with --allow for all rights',
    flags: ['--allow', allRights],
    token: 'the rights of the environment',
    rights: '',
    responses: everythingAllowed,
  },
])(
  'a service $service responds to each operation of a token with $token',
  async ({ flags, rights, responses }) => {
    const service = await serve(flags, { rights })
    const actual: Partial<Record<Operation, string>> = {}
    for (const name of Object.keys(responses) as Operation[])
      actual[name] = await sendOperation(service, name)
    expect(actual).toEqual(responses)
    // The token is checked before the right.
    const withoutToken = await exchangeOnce(service, { headers: { Authorization: undefined } })
    expect(withoutToken.text).toMatch(/^400 \(401\) /)
    // The right is checked before the type of the body.
    const headers = { 'Content-Type': 'text/plain' }
    const change = { method: 'PATCH', target: '/plants/1', body: fern, headers }
    const expectedStatus = responses.update.startsWith('403') ? /^403 / : /^415 /
    expect((await exchangeOnce(service, change)).text).toMatch(expectedStatus)
  },
)

/** Returns the status, and what the challenge of RFC 6750 says about the right. */
async function sendOperation(service: RunningService, name: Operation): Promise<string> {
  const { method, target, right } = operations[name]
  const body = method.startsWith('P') ? fern : ''
  const { text, headers } = await exchangeOnce(service, { method, target, body })
  const status = /^\d+(?: \(\d+\))?/.exec(text)?.[0]
  const insufficientScope = 'Bearer realm="plants", error="insufficient_scope"'
  switch (headers['www-authenticate']) {
    case undefined:
      return `${status}`
    case insufficientScope:
      return `${status}, not offered`
    case `${insufficientScope}, scope="${right}"`:
      return `${status}, token lacks the right`
    default:
      return `${status} ${headers['www-authenticate']}`
  }
}

test.each([
  { event: 'has expired', flags: ' --expires 1ms', command: 'tokens list' },
  { event: 'was revoked', flags: '', command: 'tokens revoke 2' },
])('a running service rejects a token that $event', async ({ flags, command }) => {
  const sandbox = new Sandbox()
  // No service starts without a valid token.
  await sandbox.run('tokens create')
  const token = (await sandbox.run(`tokens create${flags}`)).out.trim()
  const service = { ...(await serve([], { folder: sandbox.home, env: {} })), token }
  await exchangeOnce(service, { body: fern })
  await sandbox.run(command)
  await expect
    .poll(() => exchangeOnce(service, { body: fern }))
    .toMatchObject({
      status: 400,
      headers: { 'www-authenticate': 'Bearer realm="plants", error="invalid_token"' },
    })
})
