import { onTestFinished } from 'vitest'

/** Matches the beginning of each token of a test, and the tokens that the program creates. */
const secret = /s3cret|plants_[\w-]{43}/i

/** These commands print a token, or a description of tokens. */
const commandsThatShowTokens = /auth token|tokens create|openapi/

interface ShownOutput {
  argv: readonly string[]
  out?: unknown
  err?: unknown
}

/** Fails if a program has shown a token on stderr, or on stdout where no token belongs. */
export function checkSecrets({ argv, out, err }: ShownOutput): void {
  const command = argv.join(' ')
  const foundSecrets =
    secret.exec(`${err ?? ''}`) ??
    (commandsThatShowTokens.test(command) ? null : secret.exec(`${out ?? ''}`))
  if (foundSecrets === null) return
  const context = foundSecrets.input.slice(
    Math.max(0, foundSecrets.index - 60),
    foundSecrets.index + 100,
  )
  throw new Error(`plants ${command.replace(secret, '***')} has shown a token: ${context}`)
}

/** Fails the test if its program has shown a token, even if the test does not await its end. */
export function checkSecretsAtEnd(ended: Promise<ShownOutput>): void {
  let leak: unknown
  ended.then(checkSecrets).catch((error: unknown) => {
    leak = error
  })
  onTestFinished(() => {
    if (leak !== undefined) throw leak
  })
}
