import { onTestFinished } from 'vitest'

/** How each token of a test begins, so that a part of it is seen; and what the program makes. */
const secret = /s3cret|plants_[\w-]{43}/i

/** Commands whose answer is a token, or a description of tokens. */
const tellers = ['auth token', 'tokens create', 'openapi']

interface Written {
  argv: readonly string[]
  out?: unknown
  err?: unknown
}

/** Fails when a program has shown a token: on stderr, or in an answer that is none. */
export function checkSecrets(written: Written): void {
  const leak = leakIn(written)
  if (leak !== undefined) throw new Error(leak)
}

/** Fails the test when its program ends and has shown a token, also where nobody waits for it. */
export function checkSecretsOf(ended: Promise<Written>): void {
  let leak: string | undefined
  const done = ended.then((written) => {
    leak = leakIn(written)
  })
  done.catch(() => undefined) // the caller of the program gets the error
  onTestFinished(() => {
    if (leak !== undefined) throw new Error(leak)
  })
}

function leakIn({ argv, out, err }: Written): string | undefined {
  const command = argv.join(' ')
  const isTeller = tellers.some((teller) => command.includes(teller))
  const found = secret.exec(textOf(err)) ?? secret.exec(isTeller ? '' : textOf(out))
  if (found === null) return undefined
  const context = found.input.slice(Math.max(0, found.index - 60), found.index + 100)
  return `plants ${command.replace(secret, '***')} has shown a token: ${context}`
}

function textOf(written: unknown): string {
  return typeof written === 'string' ? written : ''
}
