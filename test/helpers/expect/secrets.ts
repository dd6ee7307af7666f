import { onTestFinished } from 'vitest'

/** How each token of a test begins, so that a part of it is seen; and what the program makes. */
const secret = /s3cret|plants_[\w-]{43}/i

/** Commands whose answer is a token, or a description of tokens. */
const tellers = /auth token|tokens create|openapi/

interface Written {
  argv: readonly string[]
  out?: unknown
  err?: unknown
}

/** Fails when a program has shown a token: on stderr, or in an answer that is none. */
export function checkSecrets({ argv, out, err }: Written): void {
  const command = argv.join(' ')
  const found =
    secret.exec(`${err ?? ''}`) ?? (tellers.test(command) ? null : secret.exec(`${out ?? ''}`))
  if (found === null) return
  const context = found.input.slice(Math.max(0, found.index - 60), found.index + 100)
  throw new Error(`plants ${command.replace(secret, '***')} has shown a token: ${context}`)
}

/** Fails the test when its program ends and has shown a token, also where nobody waits for it. */
export function checkSecretsAtEnd(ended: Promise<Written>): void {
  let leak: unknown
  ended.then(checkSecrets).catch((error: unknown) => {
    leak = error
  })
  onTestFinished(() => {
    if (leak !== undefined) throw leak
  })
}
