"""What a restarted manager finds: journal, directories, mount table; and what nobody owns."""
