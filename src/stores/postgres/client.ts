import pg from 'pg'
import { PlantsError } from '../../errors.js'

/** RFC 7677 asks servers for at least this many. With fewer, a password is easily guessed. */
const minScramIterations = 4096

/**
 * Logs in only with SCRAM. This class is for connections that others could read, or on which
 * another server could answer. They could read a password there, use its MD5 hash, or guess it from
 * a proof of few iterations.
 */
export class ScramOnlyClient extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config)
    const rejectServer = (request: string) => {
      const message = `${this.host} requests ${request} over a connection that others could read`
      const hint = 'Verify its certificate, with sslmode=verify-full in the address'
      this.connection.stream.destroy(new PlantsError('unauthorized', message, { hint }))
    }
    for (const event of ['authenticationCleartextPassword', 'authenticationMD5Password'])
      this.connection.prependListener(event, () => rejectServer('the password'))
    // The message of the server has the number of iterations as `i=4096` (RFC 5802, 5.1).
    this.connection.prependListener('authenticationSASLContinue', ({ data }: { data: string }) => {
      const counts = data.split(',').filter((attribute) => attribute.startsWith('i='))
      const iterations = Number(counts[0]?.slice(2))
      if (counts.length !== 1 || !(iterations >= minScramIterations))
        rejectServer('a proof of the password with too few iterations')
    })
  }
}
