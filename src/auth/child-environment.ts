import { shownAddress } from '../stores/common/address.js'

type Environment = Readonly<Record<string, string | undefined>>

/** The environment without the secrets of this program. What others need stays, such as the password of a proxy. */
export function withoutSecrets(env: Environment): Environment {
  const isSecret = (name: string, text = '') =>
    ['PLANTS_TOKEN', 'PLANTS_SERVE_TOKEN', 'PGPASSWORD'].includes(name) || (name === 'PLANTS_STORE' && shownAddress(text) !== text)
  return Object.fromEntries(Object.entries(env).filter(([name, text]) => !isSecret(name.toUpperCase(), text)))
}
