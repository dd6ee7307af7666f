import { writeAnswer } from '../../output/output.js'
import { parseChoice } from '../../platform/values.js'
import { defineCommand } from '../define-command.js'

const shells = ['bash', 'zsh', 'fish', 'powershell'] as const

export const completion = defineCommand({
  name: 'completion',
  description:
    'Print a script with which a shell completes commands, flags, their values, saved stores and settings. The script calls plants for the candidates, so it never becomes outdated.',
  arguments: [
    {
      name: '<shell>',
      description: 'bash, zsh, fish or powershell',
      values: shells,
      parse: (name: string, text: string) => parseChoice(name, text, shells),
    },
  ],
  notes: [
    {
      title: 'Installation',
      lines: [
        'bash, in ~/.bashrc:',
        '  source <(plants completion bash)',
        'zsh, once, then start a new shell (or source the script in ~/.zshrc, after compinit):',
        `  plants completion zsh > "\${fpath[1]}/_plants"`,
        'fish, once:',
        '  plants completion fish > ~/.config/fish/completions/plants.fish',
        'PowerShell, in the file $PROFILE:',
        '  plants completion powershell | Out-String | Invoke-Expression',
        'For an alias of plants, such as p:',
        '  bash: complete -F _plants p   zsh: compdef _plants p   fish: complete -c p -w plants',
      ],
    },
  ],
  examples: ['source <(plants completion bash)', 'plants completion zsh > _plants', 'plants completion fish > plants.fish'],
  async run({ args: [shell] }, io) {
    const { scripts } = await import('../completion/scripts.js')
    await writeAnswer(io, scripts[shell])
  },
})
