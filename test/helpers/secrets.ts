import { onTestFinished } from 'vitest'

/**
 * What every token of a test holds at its beginning, so that a part of it is seen as well; and what `plants tokens
 * create` makes.
 */
const secret = /s3cret|plants_[\w-]{43}/i

/** The commands whose answer is a token, or a description of tokens. */
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

/**
 * Checks what a program has written as soon as it is known, also where nobody waits for it; the test fails that shows a
 * token.
 */
export function checkSecretsOf(ended: Promise<Written>): void {
  let leak: string | undefined
  const done = ended.then((written) => {
    leak = leakIn(written)
  })
  done.catch(() => undefined) // whoever started it is told
  onTestFinished(() => {
    if (leak !== undefined) throw new Error(leak)
  })
}

function leakIn({ argv, out, err }: Written): string | undefined {
  const command = argv.join(' ')
  const answer = tellers.some((teller) => command.includes(teller)) ? '' : textOf(out)
  const found = secret.exec(textOf(err)) ?? secret.exec(answer)
  if (found === null) return undefined
  const context = found.input.slice(Math.max(0, found.index - 60), found.index + 100)
  return `plants ${command.replaceAll(new RegExp(secret, 'gi'), '***')} has shown a token: ${context}`
}

function textOf(written: unknown): string {
  return typeof written === 'string' ? written : ''
}
