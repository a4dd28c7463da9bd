from clash.cli import main

if __name__ == "__main__":
    main()
